#include "async/lease_table.h"

#include <algorithm>

#include "base/error.h"

namespace lockstep::async {

LeaseTable::LeaseTable(int64_t last, int64_t staleness, const std::vector<AppliedPush>& applied)
    : last_(last), staleness_(staleness), version_(static_cast<int64_t>(applied.size())) {
  std::set<int64_t> done;
  for (const AppliedPush& push : applied) {
    LOCKSTEP_CHECK(push.lease >= 1 && push.lease <= last && done.insert(push.lease).second,
                   "lease {} of {} was applied", push.lease, last);
    next_ = std::max(next_, push.lease + 1);
  }
  // Those before the last one that nobody came through with.
  for (int64_t number = 1; number < next_; ++number)
    if (!done.contains(number)) returned_.insert(number);
}

bool LeaseTable::keeps_bound(int64_t next, int64_t without, int64_t more) const {
  std::vector<int64_t> reads;
  for (const auto& [number, lease] : in_flight_)
    if (number != without) reads.push_back(lease.read);
  reads.insert(reads.end(), static_cast<size_t>(more), version_);
  std::sort(reads.begin(), reads.end());
  for (size_t i = 0; i < reads.size(); ++i)
    if (next + static_cast<int64_t>(i) - 1 - reads[i] > staleness_) return false;
  return true;
}

std::optional<Lease> LeaseTable::grant() {
  if (returned_.empty() && next_ > last_) return {};
  if (!keeps_bound(version_ + 1, 0, 1)) return {};
  const int64_t number = returned_.empty() ? next_ : *returned_.begin();
  return grant_again(number);
}

Lease LeaseTable::grant_again(int64_t number) {
  LOCKSTEP_CHECK(number >= 1 && number <= last_ && !in_flight_.contains(number), "lease {} of {}", number,
                 last_);
  // A replay hands out the leases in the order of another run.
  for (; next_ <= number; ++next_) returned_.insert(next_);
  LOCKSTEP_CHECK(returned_.erase(number) == 1, "lease {} was applied", number);
  const Lease lease{.number = number, .attempt = ++attempts_[number], .read = version_};
  in_flight_[number] = lease;
  return lease;
}

bool LeaseTable::is_current(int64_t number, int64_t attempt) const {
  const auto found = in_flight_.find(number);
  return found != in_flight_.end() && found->second.attempt == attempt;
}

bool LeaseTable::may_apply(int64_t number) const { return keeps_bound(version_ + 2, number, 0); }

AppliedPush LeaseTable::apply(int64_t number) {
  const auto found = in_flight_.find(number);
  LOCKSTEP_CHECK(found != in_flight_.end(), "lease {} is not in flight", number);
  const AppliedPush push{.lease = number, .read = found->second.read};
  in_flight_.erase(found);
  attempts_.erase(number);
  ++version_;
  return push;
}

void LeaseTable::give_back(int64_t number) {
  LOCKSTEP_CHECK(in_flight_.erase(number) == 1, "lease {} is not in flight", number);
  returned_.insert(number);
}

void LeaseTable::give_back_all() {
  for (const auto& [number, lease] : in_flight_) returned_.insert(number);
  in_flight_.clear();
}

}  // namespace lockstep::async
