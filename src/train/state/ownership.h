// Ownership: which worker holds which elements of the flat state (parameters, what the optimizer keeps beside
// them, averages), and which it updates.
//
// Every worker has all of it, and with data parallelism alone each updates all of its own. Workers of one
// host whose device is the processor hold it once, in memory that all of them reach, and each updates the
// part that it owns: an update moves seven floats for every parameter, and a machine's memory is no faster
// for being asked by many. Forward and backward of all of them read the same parameters, which caches hold
// once, too. Nobody changes them before all have finished backward (the sums have met), and nobody reads them
// before all have updated their parts (a barrier). Every element goes through the same operations as with one
// worker, so no bit changes.
//
// Tables with row gradients stay with each worker: which rows it brings up to date depends on its records.
#pragma once
#include <optional>

#include "comm/group.h"
#include "runtime/flat.h"
#include "train/sums/reduce_options.h"
#include "train/update/optimizer.h"

namespace lockstep {

class Ownership {
 public:
  // Of this place on the host, where the optimizer and the exchange allow it; without one, all of it is one
  // worker's.
  Ownership(std::optional<HostPlace> host, const OptimizerSettings& optimizer, const ReduceOptions& reduce);

  // Among how many the elements are divided.
  int owners() const { return place_.count; }
  // Whether they hold the state together. Of a worker that is alone on its host too: others of the group need
  // not be, and all meet for it.
  bool is_shared() const { return shared_; }
  // Whether this one fills the state in at the start.
  bool fills() const { return place_.index == 0; }
  // The elements that this one updates.
  Slice owned(const FlatLayout& layout) const;

 private:
  bool shared_;
  HostPlace place_;
};

}  // namespace lockstep
