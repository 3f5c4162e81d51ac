#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>

#include "backend/cuda/kernels/element.cuh"
#include "backend/cuda/kernels/tables.h"

namespace lockstep::cuda {
namespace {

constexpr int kThreads = 128;
constexpr int64_t kPieceTerms = 128;

__device__ __forceinline__ int64_t id_at(const Ids& ids, int64_t i) {
  return ids.wide ? static_cast<const int64_t*>(ids.data)[i] : static_cast<const int32_t*>(ids.data)[i];
}
__device__ __forceinline__ bool in_table(const Ids& ids, int64_t id) {
  return id >= 0 && id < ids.table_rows;
}

template <typename E>
__global__ void __launch_bounds__(kThreads)
    gather_kernel(Ids ids, int64_t inner, const E* table, E* out, BadId* bad) {
  const int64_t i = blockIdx.x, o = blockIdx.y;
  const int64_t id = id_at(ids, i);
  const bool good = in_table(ids, id);
  if (!good && threadIdx.x == 0) atomicMin(&bad->position, static_cast<unsigned long long>(i));
  const E* from = table + (o * ids.table_rows + (good ? id : 0)) * inner;
  E* to = out + (o * ids.count + i) * inner;
  for (int64_t k = threadIdx.x; k < inner; k += kThreads) to[k] = good ? from[k] : E{};
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    bag_kernel(Ids ids, int64_t length, bool mean, int64_t columns, const T* table, T* out, BadId* bad) {
  const int64_t bag = blockIdx.x;
  for (int64_t k = threadIdx.x; k < columns; k += kThreads) {
    float sum = 0;
    int64_t members = 0;
    for (int64_t i = bag * length; i < (bag + 1) * length; ++i) {
      const int64_t id = id_at(ids, i);
      if (id == ids.ignore) continue;
      if (!in_table(ids, id)) {
        atomicMin(&bad->position, static_cast<unsigned long long>(i));
        continue;
      }
      ++members;
      sum += to_float(table[id * columns + k]);
    }
    out[bag * columns + k] =
        from_float<T>(mean && members > 0 ? sum * (1.0f / static_cast<float>(members)) : sum);
  }
}

__global__ void __launch_bounds__(kThreads) bag_weights_kernel(Ids ids, int64_t length, float* weights) {
  const int64_t bag = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (bag >= ids.count / length) return;
  int64_t members = 0;
  for (int64_t i = bag * length; i < (bag + 1) * length; ++i) members += id_at(ids, i) != ids.ignore;
  weights[bag] = members == 0 ? 0.0f : 1.0f / static_cast<float>(members);
}

// Ids that count for nothing sort behind all rows.
__global__ void __launch_bounds__(kThreads)
    keys_kernel(Ids ids, int32_t* keys, int32_t* positions, BadId* bad) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= ids.count) return;
  const int64_t id = id_at(ids, i);
  const bool ignored = id == ids.ignore;
  if (!ignored && !in_table(ids, id)) atomicMin(&bad->position, static_cast<unsigned long long>(i));
  keys[i] = static_cast<int32_t>(ignored || !in_table(ids, id) ? ids.table_rows : id);
  positions[i] = static_cast<int32_t>(i);
}

__global__ void __launch_bounds__(kThreads) heads_kernel(const int32_t* rows, int64_t count, int32_t* heads) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i < count) heads[i] = i > 0 && rows[i] != rows[i - 1] ? 1 : 0;
}

// The first place in rising `rows` that holds at least `row`.
__device__ __forceinline__ int64_t lower_bound(const int32_t* rows, int64_t count, int64_t row) {
  int64_t low = 0, high = count;
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    if (rows[middle] < row)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

// A run of terms of one row. Pieces start at a run's first term and at every 128th after it.
struct Piece {
  int64_t begin, end;  // in the sorted list
  int64_t run_begin, run_end;
  bool starts;
  __device__ Piece(const SortedIds& sorted, int64_t count, int64_t i) {
    const int32_t row = sorted.rows[i];
    const bool head = i == 0 || sorted.rows[i - 1] != row;
    run_begin = head ? i : lower_bound(sorted.rows, count, row);
    starts = (i - run_begin) % kPieceTerms == 0;
    if (!starts) return;
    run_end = lower_bound(sorted.rows + i, count - i, int64_t{row} + 1) + i;
    begin = i;
    end = run_end < i + kPieceTerms ? run_end : i + kPieceTerms;
  }
  __device__ bool alone() const { return run_end - run_begin <= kPieceTerms; }
  // Of all pieces of long runs that start in one window of 128, at most one is the first of its run and at
  // most one is not: two slots per window are enough.
  __device__ static int64_t slot(int64_t begin, int64_t run_begin) {
    return begin / kPieceTerms * 2 + (begin == run_begin ? 1 : 0);
  }
};

template <typename T>
__device__ __forceinline__ void store_row(const RowSums& s, T* table, int64_t row, int64_t column,
                                          float sum) {
  T& to = table[row * s.columns + column];
  to = from_float<T>(s.mode == RowMode::kAdd ? to_float(to) + sum : sum);
}

// One block per place of the sorted list; most places start no piece and leave at once.
template <typename T, int N>
__global__ void __launch_bounds__(kThreads)
    pieces_kernel(SortedIds sorted, int64_t count, int64_t table_rows, RowSums s, const T* terms, T* table,
                  float* partials) {
  const int64_t i = blockIdx.x;
  if (sorted.rows[i] >= table_rows) return;
  const Piece piece(sorted, count, i);
  if (!piece.starts) return;
  const int64_t row = s.by_unit ? sorted.units[i] : sorted.rows[i];
  for (int64_t column = threadIdx.x * N; column < s.columns; column += kThreads * N) {
    float sum[N] = {};
#pragma unroll 4
    for (int64_t k = piece.begin; k < piece.end; ++k) {
      const int64_t term = sorted.positions[k] / s.terms_per_row;
      const auto pack = *reinterpret_cast<const Pack<T, N>*>(terms + term * s.columns + column);
      const float weight = s.weights == nullptr ? 1.0f : s.weights[term];
#pragma unroll
      for (int e = 0; e < N; ++e)
        sum[e] += s.weights == nullptr ? to_float(pack.v[e]) : to_float(pack.v[e]) * weight;
    }
#pragma unroll
    for (int e = 0; e < N; ++e) {
      if (piece.alone())
        store_row(s, table, row, column + e, sum[e]);
      else
        partials[Piece::slot(piece.begin, piece.run_begin) * s.columns + column + e] = sum[e];
    }
  }
}

// One block per place again; only the heads of long runs work.
template <typename T>
__global__ void __launch_bounds__(kThreads) join_kernel(SortedIds sorted, int64_t count, int64_t table_rows,
                                                        RowSums s, T* table, const float* partials) {
  const int64_t i = blockIdx.x * kPieceTerms;
  // A long run covers a multiple of 128: look for the head of the run that covers this place.
  if (i >= count || sorted.rows[i] >= table_rows) return;
  const int64_t run_begin = lower_bound(sorted.rows, count, sorted.rows[i]);
  if (i - run_begin >= kPieceTerms) return;  // an earlier place saw it
  const Piece piece(sorted, count, run_begin);
  if (piece.alone()) return;
  const int64_t row = s.by_unit ? sorted.units[run_begin] : sorted.rows[run_begin];
  for (int64_t column = int64_t{blockIdx.y} * kThreads + threadIdx.x; column < s.columns;
       column += int64_t{gridDim.y} * kThreads) {
    float sum = 0;
    for (int64_t begin = run_begin; begin < piece.run_end; begin += kPieceTerms)
      sum += partials[Piece::slot(begin, run_begin) * s.columns + column];
    store_row(s, table, row, column, sum);
  }
}

__global__ void __launch_bounds__(kThreads)
    unit_ids_kernel(SortedIds sorted, int64_t count, int64_t table_rows, int32_t* row_ids) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= count) return;
  const bool head = i == 0 || sorted.rows[i] != sorted.rows[i - 1];
  if (head && sorted.rows[i] < table_rows) row_ids[sorted.units[i]] = sorted.rows[i];
}

int64_t align(int64_t bytes) { return ceil_div(bytes, 256) * 256; }

struct SortPlan {
  size_t sort_bytes = 0, scan_bytes = 0;
  int bits = 0;
  explicit SortPlan(const Ids& ids) {
    while ((int64_t{1} << bits) <= ids.table_rows) ++bits;
    cub::DeviceRadixSort::SortPairs(nullptr, sort_bytes, static_cast<const int32_t*>(nullptr),
                                    static_cast<int32_t*>(nullptr), static_cast<const int32_t*>(nullptr),
                                    static_cast<int32_t*>(nullptr), ids.count, 0, bits);
    cub::DeviceScan::InclusiveSum(nullptr, scan_bytes, static_cast<const int32_t*>(nullptr),
                                  static_cast<int32_t*>(nullptr), ids.count);
  }
  int64_t temporary() const {
    return static_cast<int64_t>(sort_bytes > scan_bytes ? sort_bytes : scan_bytes);
  }
};

}  // namespace

void gather_rows(cudaStream_t stream, const Ids& ids, int64_t element_bytes, int64_t outer, int64_t inner,
                 const void* table, void* out, BadId* bad) {
  if (ids.count * outer * inner == 0) return;
  const int64_t bytes = inner * element_bytes;
  const dim3 grid(static_cast<unsigned>(ids.count), static_cast<unsigned>(outer));
  const auto launch = [&](auto element) {
    using E = decltype(element);
    gather_kernel<<<grid, kThreads, 0, stream>>>(ids, bytes / static_cast<int64_t>(sizeof(E)),
                                                 static_cast<const E*>(table), static_cast<E*>(out), bad);
  };
  if (bytes % 16 == 0 && aligned16(table) && aligned16(out))
    launch(uint4{});
  else if (bytes % 4 == 0)
    launch(uint32_t{});
  else if (bytes % 2 == 0)
    launch(uint16_t{});
  else
    launch(uint8_t{});
  require_launched("gather_rows");
}

void embedding_bag(cudaStream_t stream, const Ids& ids, int64_t length, bool mean, DType dtype,
                   int64_t columns, const void* table, void* out, BadId* bad) {
  if (ids.count == 0) return;
  with_storage(dtype, [&](auto zero) {
    using T = decltype(zero);
    bag_kernel<<<static_cast<unsigned>(ids.count / length), kThreads, 0, stream>>>(
        ids, length, mean, columns, static_cast<const T*>(table), static_cast<T*>(out), bad);
  });
  require_launched("embedding_bag");
}

void bag_weights(cudaStream_t stream, const Ids& ids, int64_t length, float* weights) {
  if (ids.count == 0) return;
  bag_weights_kernel<<<blocks_for(ids.count / length, kThreads, INT32_MAX), kThreads, 0, stream>>>(
      ids, length, weights);
  require_launched("bag_weights");
}

int64_t sort_ids_workspace(const Ids& ids) {
  if (ids.count == 0) return 0;
  return 4 * align(ids.count * 4) + align(SortPlan(ids).temporary());
}

SortedIds sort_ids(cudaStream_t stream, const Ids& ids, void* workspace, BadId* bad) {
  if (ids.count == 0) return {};
  const SortPlan plan(ids);
  const int64_t list = align(ids.count * 4);
  auto* bytes = static_cast<char*>(workspace);
  auto* keys = reinterpret_cast<int32_t*>(bytes);
  auto* positions = reinterpret_cast<int32_t*>(bytes + list);
  auto* rows = reinterpret_cast<int32_t*>(bytes + 2 * list);
  auto* sorted = reinterpret_cast<int32_t*>(bytes + 3 * list);
  void* temporary = bytes + 4 * list;
  const unsigned blocks = blocks_for(ids.count, kThreads, INT32_MAX);
  keys_kernel<<<blocks, kThreads, 0, stream>>>(ids, keys, positions, bad);
  require_launched("sort_ids");
  size_t sort_bytes = plan.sort_bytes, scan_bytes = plan.scan_bytes;
  require(cub::DeviceRadixSort::SortPairs(temporary, sort_bytes, keys, rows, positions, sorted, ids.count, 0,
                                          plan.bits, stream),
          "sort_ids");
  // The unsorted lists are free now: heads, then their running sum.
  heads_kernel<<<blocks, kThreads, 0, stream>>>(rows, ids.count, keys);
  require_launched("sort_ids");
  require(cub::DeviceScan::InclusiveSum(temporary, scan_bytes, keys, positions, ids.count, stream),
          "sort_ids");
  return {rows, sorted, positions};
}

int64_t row_sums_workspace(const Ids& ids, const RowSums& sums) {
  return 2 * ceil_div(ids.count, kPieceTerms) * sums.columns * int64_t{sizeof(float)};
}

void row_sums(cudaStream_t stream, const Ids& ids, const SortedIds& sorted, const RowSums& s,
              const void* terms, void* table, void* workspace) {
  if (ids.count * s.columns == 0) return;
  auto* partials = static_cast<float*>(workspace);
  const auto places = static_cast<unsigned>(ids.count);
  with_storage(s.dtype, [&](auto zero) {
    using T = decltype(zero);
    const auto* from = static_cast<const T*>(terms);
    auto* to = static_cast<T*>(table);
    if (s.columns % kPack<T> == 0 && aligned16(terms))
      pieces_kernel<T, kPack<T>>
          <<<places, kThreads, 0, stream>>>(sorted, ids.count, ids.table_rows, s, from, to, partials);
    else
      pieces_kernel<T, 1>
          <<<places, kThreads, 0, stream>>>(sorted, ids.count, ids.table_rows, s, from, to, partials);
    const dim3 grid(static_cast<unsigned>(ceil_div(ids.count, kPieceTerms)),
                    blocks_for(s.columns, kThreads, 64));
    join_kernel<<<grid, kThreads, 0, stream>>>(sorted, ids.count, ids.table_rows, s, to, partials);
  });
  require_launched("row_sums");
}

void unit_ids(cudaStream_t stream, const Ids& ids, const SortedIds& sorted, int32_t* row_ids) {
  if (ids.count == 0) return;
  require(cudaMemsetAsync(row_ids, 0xff, static_cast<size_t>(ids.count) * 4, stream), "unit_ids");
  unit_ids_kernel<<<blocks_for(ids.count, kThreads, INT32_MAX), kThreads, 0, stream>>>(
      sorted, ids.count, ids.table_rows, row_ids);
  require_launched("unit_ids");
}

}  // namespace lockstep::cuda
