// The memory that a training step takes, known from its plans before any of it is taken.
#pragma once
#include <cstdint>
#include <string>

#include "train/step/train_plans.h"

namespace lockstep {

struct TrainMemory {
  int64_t parameters = 0;  // and running statistics
  int64_t averages = 0;
  int64_t state = 0;      // of the optimizer
  int64_t offloaded = 0;  // of both, in the host's memory instead: not counted in bytes()
  int64_t gradients = 0;  // one buffer per level of the leaf tree; the first lends its bytes to activations
  int64_t residuals = 0;  // what leaves have not sent of them
  int64_t inputs = 0;
  int64_t in_flight = 0;  // of a pipeline: what its microbatches hold from forward to backward
  int64_t arena = 0;      // activations and workspace that found no place in the gradients' bytes
  int64_t kernels = 0;
  int64_t communication = 0;      // that sums over tensor ranks go through
  int64_t arena_lower_bound = 0;  // what no packing can beat
  int holders = 1;                // of the parameters, and what is not split; a worker's part is counted
  int stage = 0;                  // ZeRO
  int workers = 1;                // that the state is split between

  int64_t bytes() const {
    return parameters + averages + state + gradients + residuals + inputs + in_flight + arena + kernels +
           communication;
  }
  int64_t lower_bound() const { return bytes() - arena + arena_lower_bound; }
};

// `device`: what its kernels work in.
TrainMemory train_memory(const TrainPlans& plans, const TrainOptions& options,
                         MemoryKind device = MemoryKind::kHost);

// Where gradients are compressed with feedback: what the worker with most leaves keeps.
int64_t residual_bytes(const FlatLayout& layout, const TrainOptions& options);

// What a run takes besides its steps, in bytes.
struct BesideSteps {
  int64_t evaluation = 0;
  int64_t checkpoints = 0;
  int64_t program = 0;  // itself and its libraries

  int64_t bytes() const { return evaluation + checkpoints + program; }
};

// By category in MiB, one line each, with the planned peak and its lower bound.
std::string memory_table(const TrainPlans& plans, const TrainMemory& memory, const BesideSteps& beside);

}  // namespace lockstep
