// What workers tell each other of the pieces that they own (train/state/ownership.h): parts of the norm, and
// updated parameters.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "comm/group.h"
#include "runtime/device_reach.h"
#include "train/state/group_memory.h"
#include "train/state/model_holders.h"
#include "train/state/ownership.h"

namespace lockstep {

// What else a worker tells all others with them.
struct StepTotals {
  float loss = 0;  // of the last stage of a pipeline
  int64_t count = 0;
  int64_t request = 0;  // added up
};

// The elements of its layout whose parts of the norm a worker of the run makes: those that it owns, or of the
// sums that several have a share each.
std::vector<Slice> squared_by(int rank, const FlatLayout& layout, const ModelHolders& holders,
                              const Ownership& ownership);

// The parts of a global norm: everybody's, in the order of the layout of the whole model.
class SquareGather {
 public:
  // What each of so many workers sends: room for the parts of the one who makes most of them.
  static int64_t stride(const FlatLayout& whole, const ModelHolders& holders, const Ownership& ownership,
                        int workers);
  // What one takes.
  static int64_t planned_bytes(const FlatLayout& whole, int64_t stride, int workers, MemoryKind device);
  // `group`: of all workers.
  SquareGather(Group& group, Backend& backend, const FlatLayout& whole, const ModelHolders& holders,
               const Ownership& ownership, int64_t stride);

  // From this worker's, on the device; none where it makes none. What is put on the compute stream from here
  // on finds all of them in squares(). Returns the loss and the count of the last worker, and all requests.
  StepTotals run(const void* own, const StepTotals& totals);
  void* squares() { return all_ ? all_->data() : ordered_->data(); }
  int64_t bytes() const;

 private:
  struct Run {
    int64_t from, to, bytes;  // in what is gathered, in the order of the layout
  };
  Group& group_;
  Backend& backend_;
  int64_t stride_ = 0;  // bytes of a worker, in what is gathered
  int64_t own_bytes_ = 0;
  std::vector<Run> runs_;
  SharedBuffer gathered_;
  std::unique_ptr<Buffer> ordered_, all_;  // pinned; on a device with memory of its own
};

// Updated parameters, bucket by bucket, while the next one is updated.
class ParamGather {
 public:
  // `params`: all of them, on the device; once on a host, or everybody's own. `reach`, and what neighbours
  // have: where devices reach each other; else null.
  ParamGather(Group& group, Backend& backend, void* params, const FlatLayout& layout,
              const Ownership& ownership, const DeviceReach* reach, std::unique_ptr<PeerBuffers> peers);

  // This worker's piece of the bucket is final when the compute stream has come to this point.
  void start(int64_t bucket);
  // What is put on the compute stream from here on finds all parameters.
  void finish();
  int64_t bytes() const { return staging_.bytes(); }

 private:
  Gather through_the_host(Slice elements, char* at);
  Group::Ticket between_devices(Slice elements, const std::string& label, bool last);
  void send(Slice elements) const;
  void copy_from_peers(Slice elements) const;

  Group& group_;
  Backend& backend_;
  const DeviceReach* reach_;
  std::unique_ptr<PeerBuffers> peers_;
  char* params_;
  int64_t element_;
  bool held_once_;
  Buckets buckets_;
  StagingMemory staging_;  // where the group does not reach the device's memory
  std::vector<Group::Ticket> tickets_;
};

}  // namespace lockstep
