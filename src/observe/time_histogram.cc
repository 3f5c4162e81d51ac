#include "observe/time_histogram.h"

#include <algorithm>
#include <cmath>

namespace lockstep {
namespace {

constexpr double kFirst = 1e-6;  // seconds; the lower end of the second bucket
constexpr double kWiden = 1.01;
constexpr int kBuckets = 2548;  // up to 1e5 seconds

}  // namespace

TimeHistogram::TimeHistogram() : buckets_(kBuckets, 0) {}

void TimeHistogram::add(double seconds) {
  const double place = seconds > kFirst ? 1 + std::log(seconds / kFirst) / std::log(kWiden) : 0;
  ++buckets_[static_cast<size_t>(std::min<double>(place, kBuckets - 1))];
  low_ = count_ == 0 ? seconds : std::min(low_, seconds);
  high_ = count_ == 0 ? seconds : std::max(high_, seconds);
  ++count_;
}

double TimeHistogram::percentile(double share) const {
  if (count_ == 0) return 0;
  const int64_t rank = std::max<int64_t>(1, std::llround(std::ceil(share * static_cast<double>(count_))));
  int64_t below = 0;
  size_t bucket = 0;
  while (bucket + 1 < buckets_.size() && (below += buckets_[bucket]) < rank) ++bucket;
  return std::clamp(kFirst * std::pow(kWiden, static_cast<double>(bucket) - 0.5), low_, high_);
}

}  // namespace lockstep
