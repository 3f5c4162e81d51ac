#include "train/state/ownership.h"

namespace lockstep {
static_assert(kSliceBlock == kFlatBlock);

// Without an exchange every worker has weights of its own.
Ownership::Ownership(std::optional<HostPlace> host, const OptimizerSettings& optimizer,
                     const ReduceOptions& reduce, const ZeroPlace& zero)
    : shared_(host && reduce.exchange && updates_elements(optimizer)),
      place_(shared_ ? *host : HostPlace{}),
      zero_(zero),
      bucket_bytes_(reduce.bucket_bytes),
      least_bucket_(reduce.least_bucket) {
  if (zero_.workers == 1 || !reduce.exchange) zero_.stage = 0;
  if (zero_.stage < 3 || place_.count == zero_.workers) return;
  shared_ = false;
  place_ = {};
}

Buckets Ownership::buckets(const FlatLayout& layout) const {
  if (splits_gradients()) return Buckets::of_parameters(layout, bucket_bytes_, splits_params());
  return {layout, bucket_bytes_, is_split(), least_bucket_};
}

std::vector<Slice> Ownership::owned_by(int rank, const FlatLayout& layout) const {
  if (!is_split()) return {slice_of(layout.numel(), place_.count, place_.index)};
  return owned_by(rank, buckets(layout));
}

std::vector<Slice> Ownership::owned_by(int rank, const Buckets& buckets) const {
  std::vector<Slice> slices;
  slices.reserve(static_cast<size_t>(buckets.gradient_count()));
  for (int64_t b = 0; b < buckets.gradient_count(); ++b) {
    const Slice bucket = buckets[b];
    const Slice own = slice_of(bucket.size(), zero_.workers, rank);
    slices.push_back({bucket.begin + own.begin, bucket.begin + own.end});
  }
  return slices;
}

int64_t numel(const std::vector<Slice>& slices) {
  int64_t elements = 0;
  for (const Slice& slice : slices) elements += slice.size();
  return elements;
}

}  // namespace lockstep
