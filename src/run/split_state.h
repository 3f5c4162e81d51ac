// SplitState: tensors that workers own pieces of, or that lie in leaves, as the leader reads and writes them
// (checkpoints, what is evaluated).
//
// The leader asks for some bytes of a tensor at a time, and whoever owns of them sends what it has; or it
// gives some, and everybody takes what it owns. The others are in Workers::agree meanwhile and do what the
// leader says. So nobody ever holds more of what is not its own than these bytes.
#pragma once
#include <memory>

#include "run/workers.h"
#include "train/checkpoint/training_checkpoints.h"
#include "train/step/train_step.h"

namespace lockstep {

class SplitState {
 public:
  SplitState(Workers& workers, TrainStep& train);

  // Of the leader.
  void read(const StateTensor& tensor, int64_t first, std::span<std::byte> into);
  void write(const StateTensor& tensor, int64_t first, std::span<const std::byte> from);
  // Of all parameters and running statistics, whoever has them.
  std::string weights_sha256();

 private:
  struct Request;
  // Of the others: one request of the leader.
  void serve();
  Request request_of(const StateTensor& tensor, int64_t first, size_t bytes) const;
  void broadcast(Request& request);
  void give(const StateTensor& tensor, Slice wanted);
  void take(const StateTensor& tensor, Slice given, const std::byte* from);

  Workers& workers_;
  Group* group_;  // null where parameters are in leaves that are all here
  TrainStep& train_;
};

}  // namespace lockstep
