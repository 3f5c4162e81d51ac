// ReplaySteps: the constants of the last K steps of AdamW, kept from one run to the next, since a step's
// constants cost more than a row's step. Entry t is made again only when its learning rate is another one.
#pragma once
#include <bit>
#include <vector>

#include "backend/cpu/optimizer_steps.h"

namespace lockstep::cpu {

class ReplaySteps {
 public:
  ReplaySteps(const AdamOptions& options, int64_t capacity)
      : options_(options),
        capacity_(capacity),
        made_for_(static_cast<size_t>(capacity)),
        steps_(static_cast<size_t>(2 * capacity)) {}

  // Steps first, ..., last, which are at most K, one after another; valid until the next call. The learning
  // rate of step t is lr_history[t % K].
  const AdamStep* window(int64_t first, int64_t last, const float* lr_history) {
    for (int64_t t = first; t <= last; ++t) {
      const int64_t slot = t % capacity_;
      const MadeFor wanted{t, std::bit_cast<uint32_t>(lr_history[slot])};
      if (made_for_[static_cast<size_t>(slot)] == wanted) continue;
      made_for_[static_cast<size_t>(slot)] = wanted;
      options_.lr = lr_history[slot];
      // The gradient is zero, so that its scale does not matter. Each entry stands twice, which makes every
      // window contiguous.
      steps_[static_cast<size_t>(slot)] = steps_[static_cast<size_t>(slot + capacity_)] =
          adam_step(options_, t, 1.0f);
    }
    return steps_.data() + first % capacity_;
  }

  int64_t bytes() const {
    return static_cast<int64_t>(made_for_.size() * sizeof(MadeFor) + steps_.size() * sizeof(AdamStep));
  }

 private:
  struct MadeFor {
    int64_t step = -1;
    uint32_t lr_bits = 0;
    bool operator==(const MadeFor&) const = default;
  };

  AdamOptions options_;
  int64_t capacity_;
  std::vector<MadeFor> made_for_;
  std::vector<AdamStep> steps_;
};

}  // namespace lockstep::cpu
