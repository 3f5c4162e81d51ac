// The direct exchange of gradients between workers who reach each other's device memory: no sum passes
// through the host.
//
// A worker adds up its slice of a bucket out of everybody's partial sums, where they lie, in the order of the
// tree (the slice that it owns, or where all end with the sum its slice_of the bucket); then the others copy
// that from it. In between the group meets: before anybody reads, all partial sums must be final, and before
// anybody copies, all slices. Workers that share a device take turns on it, so nobody waits for a peer there,
// but on the group's thread, by its deadline, while backward goes on.
#pragma once
#include "train/state/device_reach.h"
#include "train/sums/exchange.h"

namespace lockstep {

class DeviceExchange : public Exchange {
 public:
  // `reach` is direct, and outlives this.
  DeviceExchange(Group& group, Backend& backend, const DeviceReach& reach, SumOrder order);

  // To be called for the first partial sum, the second, and so on.
  std::unique_ptr<Buffer> allocate(int64_t bytes) override;
  Group::Ticket start(SumType type, std::span<void* const> partials, const BucketTransfer& bucket) override;
  void sum(SumType type, int64_t count, std::span<void* const> partials, const std::string& label) override;

 private:
  // The bytes of some elements in a partial sum of a worker.
  std::byte* at(int rank, size_t partial, int64_t offset) const { return peers_->at(rank, partial) + offset; }
  int64_t offset_of(std::span<void* const> partials) const;
  void add_up(DType dtype, Slice mine, int64_t offset);
  void copy_others(int64_t count, int64_t element, int64_t offset);
  Group::Ticket meet(const Meeting& meeting, bool last);

  Group& group_;
  Backend& backend_;
  const DeviceReach& reach_;
  SumOrder order_;
  std::vector<std::shared_ptr<Buffer>> own_;
  std::vector<size_t> partials_;  // of each rank
  std::vector<uint8_t> merges_;
  std::unique_ptr<PeerBuffers> peers_;  // from the first bucket on
};

// How many partial sums all workers of the group have together.
int64_t partial_count(const Group& group, SumOrder order);

}  // namespace lockstep
