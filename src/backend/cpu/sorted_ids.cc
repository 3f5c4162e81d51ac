#include "backend/cpu/sorted_ids.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "base/error.h"

namespace lockstep::cpu {
namespace {

// Digits of at most 11 bits: 2048 counters stay in the first-level cache, and two passes cover 4 million
// rows.
constexpr int kDigitBits = 11;

// An id in the high half, its position in the low half.
using Entry = uint64_t;
int32_t row_of(Entry entry) { return static_cast<int32_t>(entry >> 32); }
int32_t position_of(Entry entry) { return static_cast<int32_t>(entry & 0xffffffffu); }

// Stable radix sort by id; returns the half, `entries` or `spare`, where the sorted list ends.
std::span<Entry> sort_by_id(std::span<Entry> entries, std::span<Entry> spare, int64_t table_rows) {
  const int bits = std::bit_width(static_cast<uint64_t>(table_rows - 1));
  const int passes = (bits + kDigitBits - 1) / kDigitBits;
  const int digit_bits = passes == 0 ? 0 : (bits + passes - 1) / passes;
  const uint64_t digit_mask = (uint64_t{1} << digit_bits) - 1;
  for (int pass = 0; pass < passes; ++pass) {
    const int shift = 32 + pass * digit_bits;
    std::array<uint32_t, size_t{1} << kDigitBits> next = {};
    for (Entry entry : entries) ++next[(entry >> shift) & digit_mask];
    uint32_t sum = 0;
    for (uint32_t& start : next) sum += std::exchange(start, sum);
    for (Entry entry : entries) spare[next[(entry >> shift) & digit_mask]++] = entry;
    std::swap(entries, spare);
  }
  return entries;
}

template <typename Id>
SortedIds sort_any(std::span<const Id> ids, int64_t table_rows, int64_t ignore,
                   std::span<std::byte> workspace, TablePart part) {
  const int64_t all_rows = part.whole > 0 ? part.whole : table_rows;
  const size_t n = ids.size();
  LOCKSTEP_CHECK(workspace.size() >= sorted_ids_bytes(static_cast<int64_t>(n)), "{} ids, {} bytes", n,
                 workspace.size());
  LOCKSTEP_CHECK(n < (size_t{1} << 31) && table_rows < (int64_t{1} << 31), "{} ids, {} rows", n, table_rows);
  auto* first = reinterpret_cast<Entry*>(workspace.data());
  size_t kept = 0;
  for (size_t i = 0; i < n; ++i) {
    if (ids[i] == ignore) continue;
    if (ids[i] < 0 || ids[i] >= all_rows) {
      SortedIds bad;
      bad.bad_position = static_cast<int64_t>(i);
      return bad;
    }
    const int64_t row = ids[i] - part.first;
    if (row >= 0 && row < table_rows) first[kept++] = static_cast<uint64_t>(row) << 32 | i;
  }
  const std::span<Entry> sorted = sort_by_id({first, kept}, {first + n, kept}, table_rows);

  auto* rows = reinterpret_cast<int32_t*>(first + 2 * n);
  int32_t* starts = rows + n;
  int32_t* positions = starts + n + 1;
  size_t units = 0;
  for (size_t k = 0; k < kept; ++k) {
    if (k == 0 || row_of(sorted[k]) != row_of(sorted[k - 1])) {
      rows[units] = row_of(sorted[k]);
      starts[units++] = static_cast<int32_t>(k);
    }
    positions[k] = position_of(sorted[k]);
  }
  starts[units] = static_cast<int32_t>(kept);
  return {{rows, units}, {starts, units + 1}, {positions, kept}};
}

template <typename Id>
void expand_any(std::span<const Id> offsets, std::span<int32_t> bag_of, std::span<float> weights) {
  for (size_t bag = 0; bag + 1 < offsets.size(); ++bag) {
    const auto size = offsets[bag + 1] - offsets[bag];
    std::fill_n(bag_of.begin() + offsets[bag], size, static_cast<int32_t>(bag));
    if (!weights.empty()) weights[bag] = size > 0 ? 1.0f / static_cast<float>(size) : 0.0f;
  }
}

}  // namespace

size_t sorted_ids_bytes(int64_t n) {
  const size_t count = static_cast<size_t>(n);
  return 2 * count * sizeof(Entry) + (3 * count + 1) * sizeof(int32_t);
}

SortedIds sort_ids(std::span<const int32_t> ids, int64_t table_rows, int64_t ignore,
                   std::span<std::byte> workspace, TablePart part) {
  return sort_any(ids, table_rows, ignore, workspace, part);
}

SortedIds sort_ids(std::span<const int64_t> ids, int64_t table_rows, int64_t ignore,
                   std::span<std::byte> workspace, TablePart part) {
  return sort_any(ids, table_rows, ignore, workspace, part);
}

void expand_bags(std::span<const int32_t> offsets, std::span<int32_t> bag_of, std::span<float> weights) {
  expand_any(offsets, bag_of, weights);
}

void expand_bags(std::span<const int64_t> offsets, std::span<int32_t> bag_of, std::span<float> weights) {
  expand_any(offsets, bag_of, weights);
}

}  // namespace lockstep::cpu
