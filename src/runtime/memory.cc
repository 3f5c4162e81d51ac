#include "runtime/memory.h"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <numeric>

#include "base/error.h"

namespace lockstep {
namespace {

int64_t aligned(int64_t bytes, int64_t alignment) { return (bytes + alignment - 1) / alignment * alignment; }

bool overlap(const LiveInterval& a, const LiveInterval& b) { return a.first <= b.last && b.first <= a.last; }

// Places intervals in the given order, each at the tightest gap left between those alive at the same time.
Packing place(const std::vector<LiveInterval>& intervals, const std::vector<size_t>& order, int64_t alignment) {
  Packing packing;
  packing.offsets.assign(intervals.size(), 0);
  std::vector<size_t> placed;  // sorted by offset
  for (const size_t index : order) {
    const LiveInterval& interval = intervals[index];
    const int64_t bytes = aligned(interval.bytes, alignment);
    if (bytes == 0) continue;
    int64_t best = -1;
    int64_t best_gap = std::numeric_limits<int64_t>::max();
    int64_t end = 0;
    for (const size_t other : placed) {
      if (!overlap(interval, intervals[other])) continue;
      const int64_t gap = packing.offsets[other] - end;
      if (gap >= bytes && gap < best_gap) {
        best = end;
        best_gap = gap;
      }
      end = std::max(end, packing.offsets[other] + aligned(intervals[other].bytes, alignment));
    }
    packing.offsets[index] = best >= 0 ? best : end;
    packing.peak = std::max(packing.peak, packing.offsets[index] + bytes);
    const auto position = std::upper_bound(placed.begin(), placed.end(), index, [&](size_t a, size_t b) {
      return packing.offsets[a] < packing.offsets[b];
    });
    placed.insert(position, index);
  }
  return packing;
}

}  // namespace

std::string_view name_of(MemoryCategory category) {
  constexpr std::array<std::string_view, kMemoryCategories> kNames = {
      "parameters", "gradients", "state", "inputs", "saved activations", "scratch", "workspace"};
  return kNames[static_cast<size_t>(category)];
}

int64_t live_lower_bound(const std::vector<LiveInterval>& intervals, int64_t alignment) {
  int32_t steps = 0;
  for (const LiveInterval& interval : intervals) steps = std::max(steps, interval.last + 1);
  std::vector<int64_t> change(static_cast<size_t>(steps) + 1, 0);
  for (const LiveInterval& interval : intervals) {
    change[static_cast<size_t>(interval.first)] += aligned(interval.bytes, alignment);
    change[static_cast<size_t>(interval.last) + 1] -= aligned(interval.bytes, alignment);
  }
  int64_t live = 0;
  int64_t peak = 0;
  for (const int64_t delta : change) peak = std::max(peak, live += delta);
  return peak;
}

Packing pack_intervals(const std::vector<LiveInterval>& intervals, int64_t alignment) {
  const auto length = [&](size_t i) { return static_cast<int64_t>(intervals[i].last) - intervals[i].first + 1; };
  struct Order {
    const char* name;
    std::function<double(size_t)> key;  // larger first
  };
  const std::array<Order, 4> orders = {
      Order{"size", [&](size_t i) { return static_cast<double>(intervals[i].bytes); }},
      Order{"lifetime", [&](size_t i) { return static_cast<double>(length(i)); }},
      Order{"area", [&](size_t i) { return static_cast<double>(intervals[i].bytes) * static_cast<double>(length(i)); }},
      Order{"time", [&](size_t i) { return -static_cast<double>(intervals[i].first); }}};
  const int64_t lower_bound = live_lower_bound(intervals, alignment);
  Packing best;
  best.peak = -1;
  for (const Order& order : orders) {
    std::vector<size_t> indices(intervals.size());
    std::iota(indices.begin(), indices.end(), size_t{0});
    std::stable_sort(indices.begin(), indices.end(), [&](size_t a, size_t b) { return order.key(a) > order.key(b); });
    Packing packing = place(intervals, indices, alignment);
    if (best.peak < 0 || packing.peak < best.peak) {
      best = std::move(packing);
      best.order = order.name;
    }
    if (best.peak == lower_bound) break;
  }
  best.peak = std::max<int64_t>(best.peak, 0);
  best.lower_bound = lower_bound;
  return best;
}

}  // namespace lockstep
