// LeaseTable: who computes which lease of an asynchronous run, and which push may be applied next.
//
// A lease is the global batch of one step of the data's order: records that follow from its number alone. It
// is handed out with an attempt: what a worker sends for an attempt that was taken back is not its business
// any more. Every lease is applied exactly once, by whichever attempt comes through.
//
// Staleness is counted in versions between the weights that a gradient is of and the push that applies it: a
// lease that read version r and makes version n has an age of n - 1 - r. None is ever above the bound. A
// lease is only handed out, and a push only applied, where all leases in flight can still keep it when they
// are applied one after another, those that read the oldest version first. So a slow worker holds up others
// as late as the bound permits, and not a moment sooner.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "async/apply_log.h"

namespace lockstep::async {

struct Lease {
  int64_t number = 0;   // from 1
  int64_t attempt = 0;  // from 1, of this number
  int64_t read = 0;     // the version that it is computed from

  bool operator==(const Lease&) const = default;
};

class LeaseTable {
 public:
  // Leases 1 to `last`, of which those pushes were applied already.
  LeaseTable(int64_t last, int64_t staleness, const std::vector<AppliedPush>& applied);

  int64_t version() const { return version_; }
  // The next lease, of the version at hand: one that was given back, or the first that nobody had. Nothing
  // where all are taken, or one more in flight could not keep the bound.
  std::optional<Lease> grant();
  // That lease of this version, whatever the bound permits: for a replay, which knows that it is kept.
  Lease grant_again(int64_t number);
  // Whether it is in flight, and this is its last attempt.
  bool is_current(int64_t number, int64_t attempt) const;
  // Whether the others in flight could keep the bound after it.
  bool may_apply(int64_t number) const;
  // It makes the next version. Must be in flight.
  AppliedPush apply(int64_t number);
  // Its worker is lost: it is handed out again before any other.
  void give_back(int64_t number);
  // All that is in flight is void.
  void give_back_all();
  size_t in_flight() const { return in_flight_.size(); }

 private:
  // Whether those in flight but one, and `more` that read the version at hand, keep the bound if the next
  // push makes version `next`.
  bool keeps_bound(int64_t next, int64_t without, int64_t more) const;

  int64_t last_;
  int64_t staleness_;
  int64_t version_ = 0;
  int64_t next_ = 1;                     // the first that was never handed out
  std::set<int64_t> returned_;           // to be handed out again
  std::map<int64_t, Lease> in_flight_;   // by number
  std::map<int64_t, int64_t> attempts_;  // of those that are not applied
};

}  // namespace lockstep::async
