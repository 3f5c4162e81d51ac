// RowTeam: kWarps warps that hold one row of a matrix in registers, kPacks packs of 16 bytes per thread.
//
// Columns lie in 16-byte packs; thread t of the team holds packs t, t + 32 kWarps, ... of them. Blocks have
// kTeamThreads threads and so hold one or more teams.
#pragma once
#include "backend/cuda/kernels/element.cuh"
#include "backend/cuda/kernels/sums.cuh"

namespace lockstep::cuda {

template <int kWarps>
inline constexpr int kTeamThreads = kWarps <= 4 ? 128 : 32 * kWarps;
template <int kWarps>
inline constexpr int kTeamsPerBlock = kTeamThreads<kWarps> / (32 * kWarps);

template <typename T, int kWarps, int kPacks>
struct RowTeam {
  static constexpr int kTeams = kTeamsPerBlock<kWarps>;
  static constexpr int kThreads = 32 * kWarps;

  int64_t row;
  int columns;
  int thread;  // within the team
  int team;    // within the block
  bool alive;  // false in the last block's teams beyond the last row: they only take part in barriers

  __device__ RowTeam(int64_t rows, int columns_)
      : columns(columns_), thread(threadIdx.x % kThreads), team(threadIdx.x / kThreads) {
    move_to(int64_t{blockIdx.x} * kTeams + team, rows);
  }
  __device__ __forceinline__ void move_to(int64_t row_, int64_t rows) {
    row = row_;
    alive = row < rows;
  }

  __device__ __forceinline__ int column(int p) const { return (p * kThreads + thread) * kPack<T>; }
  __device__ __forceinline__ bool has(int p) const { return alive && column(p) < columns; }
  __device__ __forceinline__ bool first_lane() const { return alive && thread == 0; }

  // Absent packs become zero.
  __device__ __forceinline__ void load(const T* matrix, float (&x)[kPacks][kPack<T>]) const {
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      Pack<T> pack{};
      if (has(p)) pack = load_pack(matrix + row * columns + column(p));
#pragma unroll
      for (int i = 0; i < kPack<T>; ++i) x[p][i] = has(p) ? to_float(pack.v[i]) : 0.0f;
    }
  }
  __device__ __forceinline__ void store(T* matrix, const float (&x)[kPacks][kPack<T>]) const {
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      if (!has(p)) continue;
      Pack<T> pack;
#pragma unroll
      for (int i = 0; i < kPack<T>; ++i) pack.v[i] = from_float<T>(x[p][i]);
      store_pack(matrix + row * columns + column(p), pack);
    }
  }
  // body(pack, element) over what this thread holds.
  template <typename Body>
  __device__ __forceinline__ void each(const Body& body) const {
#pragma unroll
    for (int p = 0; p < kPacks; ++p)
      if (has(p))
#pragma unroll
        for (int i = 0; i < kPack<T>; ++i) body(p, i);
  }
  template <typename Op = Add>
  __device__ __forceinline__ float sum(float x, float (&scratch)[kTeams][kWarps], Op op = {}) const {
    return team_all<kWarps>(x, scratch[team], thread / 32, op);
  }
};

// Calls body.operator()<kWarps, kPacks>() with the smallest team that holds a row of `columns` in at most
// kMostPacks packs per thread (of 1, in two for the longest rows). False where rows are not made of whole
// packs, or too long.
template <typename T, int kMostPacks, typename Body>
bool with_row_team(int64_t columns, const Body& body) {
  if (columns % kPack<T> != 0 || columns == 0) return false;
  const int64_t packs = columns / kPack<T>;
  const auto fits = [&](int warps, int each) { return packs <= int64_t{32} * warps * each; };
  if (fits(1, 1)) return body.template operator()<1, 1>(), true;
  if constexpr (kMostPacks == 1) {
    if (fits(2, 1)) return body.template operator()<2, 1>(), true;
    if (fits(3, 1)) return body.template operator()<3, 1>(), true;
    if (fits(4, 1)) return body.template operator()<4, 1>(), true;
    if (fits(8, 1)) return body.template operator()<8, 1>(), true;
    if (fits(16, 1)) return body.template operator()<16, 1>(), true;
    if (fits(16, 2)) return body.template operator()<16, 2>(), true;
  } else if constexpr (kMostPacks >= 4) {
    if (fits(1, 2)) return body.template operator()<1, 2>(), true;
    if (fits(1, 3)) return body.template operator()<1, 3>(), true;
    if (fits(1, 4)) return body.template operator()<1, 4>(), true;
    if (fits(2, 4)) return body.template operator()<2, 4>(), true;
    if (fits(4, 4)) return body.template operator()<4, 4>(), true;
    if (fits(8, 4)) return body.template operator()<8, 4>(), true;
    if (fits(16, 4)) return body.template operator()<16, 4>(), true;
  } else {
    if (fits(1, 2)) return body.template operator()<1, 2>(), true;
    if (fits(2, 2)) return body.template operator()<2, 2>(), true;
    if (fits(4, 2)) return body.template operator()<4, 2>(), true;
    if (fits(8, 2)) return body.template operator()<8, 2>(), true;
    if (fits(16, 2)) return body.template operator()<16, 2>(), true;
  }
  return false;
}

}  // namespace lockstep::cuda
