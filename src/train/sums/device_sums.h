// DeviceSums: the partial sums of all workers over the elements that this one adds up, on its device.
//
// Those of neighbours are read where they lie. Of every other host comes what its workers have together: for
// each of ours, one of them adds up their partial sums as far as the tree allows, and sends that
// (runtime/device_reach.h).
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "runtime/device_reach.h"

namespace lockstep {

class DeviceSums {
 public:
  struct Part {
    LeafRange leaves;
    const std::byte* at;  // the first element of the slice
  };
  struct Shares {
    int64_t leaves = 1;                              // of the tree
    std::vector<std::vector<LeafRange>> parts = {};  // of each rank, in the order of leaves
    std::vector<Slice> slices = {};                  // of each rank: the elements that it adds up
  };
  // Where a neighbour's part begins.
  using At = std::function<const std::byte*(int rank, size_t part)>;

  DeviceSums(Group& group, Backend& backend, const DeviceReach& reach);

  // In the order of leaves; there until the next call. Between meetings, on the group's thread.
  std::vector<Part> bring(DType dtype, const Shares& shares, const At& at);
  // Puts the sum of all of them on the communication stream.
  void add_up(DType dtype, int64_t leaves, std::span<const Part> parts, void* into, int64_t count) const;
  int64_t bytes() const { return bytes_; }

 private:
  Group& group_;
  Backend& backend_;
  const DeviceReach& reach_;
  std::unique_ptr<Buffer> sent_, received_;
  int64_t bytes_ = 0;
};

}  // namespace lockstep
