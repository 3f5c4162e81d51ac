// LeafResiduals: what the leaves of a worker have not sent yet of their gradients (error feedback).
//
// Compression that leaves much out keeps it for the steps to come: a leaf's gradient joins what is left of
// the steps before, some of the sum is sent, and the rest stays. This is kept for every leaf of the canonical
// tree, not for every worker, so that the bits do not depend on how many there are; it takes V/P copies of
// the gradients, and is part of every checkpoint (TrainState::residuals). After a step that is left out it is
// cleared: what was not finite must not come back, and a worker that starts from a checkpoint must find the
// same.
#pragma once
#include <cstdint>
#include <vector>

#include "base/thread_pool.h"
#include "comm/collective.h"
#include "comm/leaf_range.h"
#include "runtime/flat.h"

namespace lockstep {

class LeafResiduals {
 public:
  // `memory`: one flat buffer of the layout's gradients for each leaf of the range.
  LeafResiduals(float* memory, LeafRange own, int64_t numel, int threads)
      : memory_(memory),
        own_(own),
        numel_(numel),
        finite_(static_cast<size_t>(own.size() * numel / kFlatBlock), 1),
        pool_(threads) {}

  LeafRange own() const { return own_; }
  bool has(int64_t leaf) const { return leaf >= own_.begin && leaf < own_.end; }
  // Elements of a leaf that this worker has.
  float* at(int64_t leaf, int64_t element) { return memory_ + (leaf - own_.begin) * numel_ + element; }
  // Whether the block of an element, or what was added to it, is finite.
  bool is_finite(int64_t leaf, int64_t element) const { return finite_[block_of(leaf, element)] != 0; }
  // A leaf's gradients join what it has not sent. Whole blocks of the layout.
  void add(int64_t leaf, const float* gradients, Slice elements);
  ThreadPool& pool() { return pool_; }

 private:
  size_t block_of(int64_t leaf, int64_t element) const {
    return static_cast<size_t>(((leaf - own_.begin) * numel_ + element) / kFlatBlock);
  }

  float* memory_;
  LeafRange own_;
  int64_t numel_;
  std::vector<uint8_t> finite_;  // by block
  ThreadPool pool_;
};

}  // namespace lockstep
