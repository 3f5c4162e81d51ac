// What workers tell each other of the pieces that they own (train/state/ownership.h): parts of the norm, and
// updated parameters.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "comm/group.h"
#include "train/state/ownership.h"

namespace lockstep {

// The parts of a global norm: everybody's, in the order of the layout.
class SquareGather {
 public:
  SquareGather(Group& group, Backend& backend, const FlatLayout& layout, const Ownership& ownership);

  // From this worker's, on the device; none where it owns nothing. What is put on the compute stream from
  // here on finds all of them in squares().
  void run(const void* own);
  void* squares() { return all_ ? all_->data() : ordered_->data(); }
  int64_t bytes() const;
  // What one takes.
  static int64_t planned_bytes(const FlatLayout& layout, const Ownership& ownership, MemoryKind device);

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
  // `params`: all of them, on the device; once on a host, or everybody's own.
  ParamGather(Group& group, Backend& backend, void* params, const FlatLayout& layout,
              const Ownership& ownership);

  // This worker's piece of the bucket is final when the compute stream has come to this point.
  void start(int64_t bucket);
  // What is put on the compute stream from here on finds all parameters.
  void finish();
  int64_t bytes() const { return staging_.bytes(); }

 private:
  Group& group_;
  Backend& backend_;
  char* params_;
  int64_t element_;
  bool held_once_;
  Buckets buckets_;
  SharedBuffer staging_;  // where the group does not reach the device's memory
  std::vector<Group::Ticket> tickets_;
};

}  // namespace lockstep
