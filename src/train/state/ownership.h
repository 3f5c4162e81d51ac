// Ownership: which worker holds which elements of the flat state (parameters, what the optimizer keeps beside
// them, averages), and which it updates.
//
// With data parallelism alone every worker has all of it, and each updates all of its own. Workers of one
// host whose device is the processor hold it once, in memory that all of them reach, and each updates the
// part that it owns: an update moves seven floats for every parameter, and a machine's memory is no faster
// for being asked by many. Forward and backward of all of them read the same parameters, which caches hold
// once, too. Nobody changes them before all have finished backward (the sums have met), and nobody reads them
// before all have updated their parts (a barrier).
//
// Split (ZeRO, docs/splitting.md), every worker of the run owns a piece of each bucket of gradients: it alone
// holds the optimizer's state and the averages of these elements, and updates them; the parameters are then
// gathered. These everybody has, those of a host still once where they can. At stage 3 a worker holds the
// parameters of its pieces alone, and what a microbatch needs is gathered when it is used; where all workers
// are of one host, they hold the parameters together, which takes as little, and nothing is gathered.
//
// In groups (strategy.zero_group) all of that is of the workers of a group, and every group owns everything.
//
// Every element goes through the same operations as with one worker, so no bit changes. Tables with row
// gradients stay with each worker: which rows it brings up to date depends on its records.
#pragma once
#include <optional>
#include <vector>

#include "comm/group.h"
#include "runtime/flat.h"
#include "train/sums/buckets.h"
#include "train/sums/reduce_options.h"
#include "train/update/optimizer.h"

namespace lockstep {

// The ZeRO stage that a worker is planned for, and its place among those who share out everything: all
// workers, or those of a group.
struct ZeroPlace {
  int stage = 0;  // 1: optimizer state and averages are split; 2: gradients too; 3: parameters too
  int workers = 1;
  int rank = 0;
};

class Ownership {
 public:
  // Of this place on the host, where the optimizer and the exchange allow it; without one, nobody shares
  // memory. A worker without peers splits nothing.
  Ownership(std::optional<HostPlace> host, const OptimizerSettings& optimizer, const ReduceOptions& reduce,
            const ZeroPlace& zero = {});

  // How many hold the parameters together, and what is not split.
  int owners() const { return place_.count; }
  // Whether they hold the state together. Of a worker that is alone on its host too: others of the group need
  // not be, and all meet for it.
  bool is_shared() const { return shared_; }
  // Whether this one fills the state in at the start.
  bool fills() const { return place_.index == 0; }

  int stage() const { return zero_.stage; }
  bool is_split() const { return zero_.stage > 0; }
  int workers() const { return zero_.workers; }
  // Whether updated parameters have to travel: not where all workers hold them together.
  bool gathers() const {
    return is_split() && !splits_params() && !(shared_ && place_.count == zero_.workers);
  }
  // Whether a worker keeps no sum but its piece of it.
  bool splits_gradients() const { return zero_.stage >= 2; }
  // Whether it holds no parameters but those of its pieces.
  bool splits_params() const { return zero_.stage == 3 && !shared_; }
  // In which gradients travel where the state is split.
  Buckets buckets(const FlatLayout& layout) const;
  // The elements that this one updates: one slice, or where the state is split one of each bucket of
  // gradients, which may be empty.
  std::vector<Slice> owned(const FlatLayout& layout) const { return owned_by(zero_.rank, layout); }
  // Where the state is split, those of another.
  std::vector<Slice> owned_by(int rank, const FlatLayout& layout) const;
  // The same, of the buckets of the layout.
  std::vector<Slice> owned_by(int rank, const Buckets& buckets) const;

 private:
  bool shared_;
  HostPlace place_;
  ZeroPlace zero_;
  int64_t bucket_bytes_;
  int64_t least_bucket_;
};

int64_t numel(const std::vector<Slice>& slices);

}  // namespace lockstep
