// Buckets: the pieces in which gradients are reduced while backward goes on.
//
// Their edges follow from the layout alone, never from a measurement: what a worker owns falls on them, and
// every worker must find the same. A bucket costs the latency of a collective, and the last one can only
// begin when backward has ended, so its transfer is always in the open: 32 buckets leave 3 % of the transfer
// there. They have at least 512 KiB (ReduceOptions::least_bucket); above 16 MiB nothing is gained.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "comm/collective.h"
#include "runtime/flat.h"
#include "train/sums/reduce_options.h"

namespace lockstep {

class Buckets {
 public:
  Buckets() = default;
  // Of all sums of the layout; `bytes` of them each, rounded up to whole blocks. 0: as said above. A bucket's
  // sums have one type: where statistics differ from gradients, they have buckets of their own. So they have
  // where gradients are owned by workers (`owned`), and statistics are not.
  Buckets(const FlatLayout& layout, int64_t bytes, bool owned = false, int64_t least = kLeastBucket);
  // Of the gradients of whole parameters, for workers who keep none of a bucket but their piece: neighbours
  // of together at least such a size make a part, which lies in one piece of memory; buckets are pieces of
  // parts. Where parameters are owned too, parts also end where units do: parameters that are gathered
  // together, those of a block of the model. A table that outweighs the rest of its block is a unit of its
  // own, and what is smaller than a bucket joins its neighbour. Parts and units end where a stage does.
  static Buckets of_parameters(const FlatLayout& layout, int64_t bytes, bool by_units = false);

  int64_t bytes() const { return bytes_; }  // of the largest
  int64_t count() const { return static_cast<int64_t>(slices_.size()); }
  Slice operator[](int64_t index) const { return slices_[static_cast<size_t>(index)]; }  // its elements
  // Those of gradients come first.
  int64_t gradient_count() const { return gradients_; }
  const std::vector<Slice>& parts() const { return parts_; }  // elements; of of_parameters
  const std::vector<Slice>& units() const { return units_; }  // elements; of of_parameters by units
  std::string text() const;                                   // "9 of 2.4 MiB"

 private:
  void cut(Slice part, int64_t size);

  std::vector<Slice> slices_, parts_, units_;
  int64_t gradients_ = 0;
  int64_t bytes_ = 0, total_bytes_ = 0;
};

}  // namespace lockstep
