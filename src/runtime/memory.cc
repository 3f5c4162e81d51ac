#include "runtime/memory.h"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>

#include "base/error.h"

namespace lockstep {
namespace {

int64_t aligned(int64_t bytes, int64_t alignment) { return (bytes + alignment - 1) / alignment * alignment; }

// Which gap an interval goes to, and at which end of it.
enum class Fit : uint8_t { kTightest, kLowest, kHighest };

// Places intervals in the given order, each in a gap left between those alive at the same time.
class Placer {
 public:
  Placer(const std::vector<LiveInterval>& intervals, int64_t alignment, int64_t border, Fit fit)
      : intervals_(intervals), alignment_(alignment), border_(border), fit_(fit) {
    packing_.offsets.assign(intervals.size(), 0);
  }

  // Stops where it comes to no less than `limit`.
  Packing run(const std::vector<std::pair<double, size_t>>& order, int64_t limit) && {
    packing_.peak = border_;
    for (size_t i = 0; i < intervals_.size(); ++i)
      if (intervals_[i].fixed_offset >= 0) put(i, intervals_[i].fixed_offset);
    for (const auto& [key, i] : order) {
      put(i, best_offset(i));
      if (packing_.peak >= limit) break;
    }
    return std::move(packing_);
  }

 private:
  int64_t size_of(size_t i) const { return aligned(intervals_[i].bytes, alignment_); }

  int64_t best_offset(size_t index) const {
    const int64_t bytes = size_of(index);
    int64_t best = -1;
    int64_t best_gap = std::numeric_limits<int64_t>::max();
    int64_t end = 0;
    const auto take = [&](int64_t begin, int64_t until) {
      const int64_t gap = until - begin;
      if (gap < bytes) return;
      const bool better = best < 0 || (fit_ == Fit::kTightest && gap < best_gap) ||
                          (fit_ == Fit::kHighest && until <= border_);
      if (!better) return;
      best = fit_ == Fit::kHighest && until <= border_
                 ? std::max(begin, (until - bytes) / alignment_ * alignment_)
                 : begin;
      best_gap = gap;
    };
    // What comes behind `end` would not be taken.
    const auto is_found = [&] {
      if (best < 0) return false;
      return fit_ == Fit::kTightest ? best_gap == bytes : fit_ == Fit::kLowest || end >= border_;
    };
    // A gap over the border is two: nobody may cross it.
    const auto consider = [&](int64_t begin, int64_t until) {
      if (begin >= border_ || until <= border_) return take(begin, until);
      take(begin, border_);
      take(border_, until);
    };
    const int32_t first = intervals_[index].first;
    const int32_t last = intervals_[index].last;
    for (const Placed& other : placed_) {
      if (other.first > last || first > other.last) continue;
      consider(end, other.begin);
      end = std::max(end, other.end);
      if (is_found()) return best;
    }
    // Free bytes below the border cost nothing; beyond it the arena grows.
    if (end < border_) consider(end, border_);
    return best >= 0 ? best : std::max(end, border_);
  }

  void put(size_t index, int64_t offset) {
    packing_.offsets[index] = offset;
    packing_.peak = std::max(packing_.peak, offset + size_of(index));
    const auto position = std::upper_bound(placed_.begin(), placed_.end(), offset,
                                           [](int64_t at, const Placed& other) { return at < other.begin; });
    // Fixed ones may end anywhere.
    placed_.insert(position, {offset, aligned(offset + size_of(index), alignment_), intervals_[index].first,
                              intervals_[index].last});
  }

  // All of it is looked through for every interval, so it lies in one row.
  struct Placed {
    int64_t begin, end;
    int32_t first, last;
  };

  const std::vector<LiveInterval>& intervals_;
  int64_t alignment_;
  int64_t border_;
  Fit fit_;
  Packing packing_;
  std::vector<Placed> placed_;  // sorted by where they begin
};

}  // namespace

std::string_view name_of(MemoryCategory category) {
  constexpr std::array<std::string_view, kMemoryCategories> kNames = {
      "parameters", "gradients", "state",   "inputs",       "saved activations",
      "scratch",    "workspace", "kernels", "communication"};
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

Packing pack_intervals(const std::vector<LiveInterval>& intervals, int64_t alignment, int64_t border) {
  const auto length = [&](size_t i) {
    return static_cast<int64_t>(intervals[i].last) - intervals[i].first + 1;
  };
  struct Order {
    const char* name;
    std::function<double(size_t)> key;  // larger first
  };
  const std::array<Order, 6> orders = {
      Order{"size", [&](size_t i) { return static_cast<double>(intervals[i].bytes); }},
      Order{"lifetime", [&](size_t i) { return static_cast<double>(length(i)); }},
      Order{
          "area",
          [&](size_t i) { return static_cast<double>(intervals[i].bytes) * static_cast<double>(length(i)); }},
      Order{"start", [&](size_t i) { return -static_cast<double>(intervals[i].first); }},
      Order{"end", [&](size_t i) { return static_cast<double>(intervals[i].last); }},
      Order{"early end", [&](size_t i) { return -static_cast<double>(intervals[i].last); }}};
  std::vector<size_t> placed;
  for (size_t i = 0; i < intervals.size(); ++i)
    if (intervals[i].fixed_offset < 0 && intervals[i].bytes > 0) placed.push_back(i);
  // Highest: the end of the region is written last, so what lives longest fits there and nowhere else.
  constexpr std::array<std::pair<Fit, const char*>, 3> kFits = {std::pair{Fit::kTightest, "tightest"},
                                                                std::pair{Fit::kLowest, "lowest"},
                                                                std::pair{Fit::kHighest, "highest"}};
  const int64_t lower_bound = std::max(border, live_lower_bound(intervals, alignment));
  Packing best;
  best.peak = -1;
  for (const Order& order : orders) {
    std::vector<std::pair<double, size_t>> sorted;
    for (const size_t i : placed) sorted.emplace_back(-order.key(i), i);
    std::ranges::sort(sorted);
    for (const auto& [fit, fit_name] : kFits) {
      if (best.peak == lower_bound) break;
      if (fit == Fit::kHighest && border == 0) continue;  // the lowest, where no gap is below the border
      const int64_t limit = best.peak >= 0 ? best.peak : std::numeric_limits<int64_t>::max();
      Packing packing = Placer(intervals, alignment, border, fit).run(sorted, limit);
      if (packing.peak >= limit) continue;
      best = std::move(packing);
      best.order = std::string(order.name) + ", " + fit_name;
    }
  }
  best.peak = std::max<int64_t>(best.peak, 0);
  best.lower_bound = lower_bound;
  return best;
}

}  // namespace lockstep
