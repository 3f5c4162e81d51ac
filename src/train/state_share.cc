#include "train/state_share.h"

namespace lockstep {

static_assert(kSliceBlock == kFlatBlock);

// Without an exchange every worker has weights of its own.
StateShare::StateShare(std::optional<HostPlace> host, const OptimizerSettings& optimizer,
                       const ReduceOptions& reduce)
    : shared_(host && reduce.exchange && updates_elements(optimizer)), host_(shared_ ? *host : HostPlace{}) {}

Slice StateShare::part_of(const FlatLayout& layout) const {
  return slice_of(layout.numel(), host_.count, host_.index);
}

}  // namespace lockstep
