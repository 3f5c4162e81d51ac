#include "train/state/ownership.h"

namespace lockstep {

static_assert(kSliceBlock == kFlatBlock);

// Without an exchange every worker has weights of its own.
Ownership::Ownership(std::optional<HostPlace> host, const OptimizerSettings& optimizer,
                     const ReduceOptions& reduce)
    : shared_(host && reduce.exchange && updates_elements(optimizer)),
      place_(shared_ ? *host : HostPlace{}) {}

Slice Ownership::owned(const FlatLayout& layout) const {
  return slice_of(layout.numel(), place_.count, place_.index);
}

}  // namespace lockstep
