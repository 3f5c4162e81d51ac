#include "comm/shm/route_choice.h"

#include <algorithm>
#include <bit>

namespace lockstep::shm {
namespace {

// Several calls in a row: the first one on a route finds the data where the other route has left it.
constexpr int64_t kFirstTries = 4;
constexpr int64_t kTries = 2;
// The first call after a change finds the data in the wrong place: small differences are not worth it.
constexpr double kWorthwhile = 0.85;
constexpr int64_t kTryAgain = 1024;  // rare enough that a route seven times as slow costs 2 %

}  // namespace

RouteChoice::SizeClass& RouteChoice::size_class(int64_t bytes) {
  return classes_[static_cast<size_t>(std::bit_width(static_cast<uint64_t>(bytes))) % classes_.size()];
}

bool RouteChoice::through_caches(int64_t bytes) {
  SizeClass& one = size_class(bytes);
  const int64_t call = one.calls++;
  if (call < 2 * kFirstTries) return call < kFirstTries;
  const double used = one.nanoseconds[one.through ? 1 : 0];
  const double other = one.nanoseconds[one.through ? 0 : 1];
  if (other < kWorthwhile * used) one.through = !one.through;
  return call % kTryAgain < kTries ? !one.through : one.through;
}

void RouteChoice::took(int64_t bytes, bool through_caches, int64_t nanoseconds) {
  SizeClass& one = size_class(bytes);
  double& known = one.nanoseconds[through_caches ? 1 : 0];
  const auto now = static_cast<double>(nanoseconds);
  // A call may be slow because it was interrupted, or touched memory for the first time: that counts little.
  if (known == 0 || now < known)
    known = now;
  else
    known += (std::min(now, 2 * known) - known) / 4;
}

}  // namespace lockstep::shm
