// The direct exchange of gradients between workers whose devices reach each other
// (runtime/device_reach.h): no sum passes through the host.
//
// A worker adds up its slice of a bucket out of everybody's partial sums (train/sums/device_sums.h), in the
// order of the tree (the slice that it owns, or where all end with the sum its slice_of the bucket); then
// partners send it to each other, and neighbours copy it. In between the group meets: before anybody reads,
// all partial sums must be final, and before anybody copies, all slices. Workers that share a device take
// turns on it, so nobody waits for a peer there, but on the group's thread, by its deadline, while backward
// goes on; a message is sent when all are known to take part.
#pragma once
#include "train/sums/device_sums.h"
#include "train/sums/exchange.h"

namespace lockstep {

class DeviceExchange : public Exchange {
 public:
  // `reach` is direct, and outlives this.
  DeviceExchange(Group& group, Backend& backend, const DeviceReach& reach, SumOrder order);

  // To be called for the first partial sum, the second, and so on. Without neighbours any memory of the
  // device will do.
  std::unique_ptr<Buffer> allocate(int64_t bytes) override;
  Group::Ticket start(SumType type, std::span<void* const> partials, const BucketTransfer& bucket) override;
  void sum(SumType type, int64_t count, std::span<void* const> partials, const std::string& label) override;

 private:
  // What a bucket's transfer works on, from meeting to meeting.
  struct Moved {
    DType dtype;
    int64_t count;
    int64_t offset;  // bytes of the bucket, in memory that neighbours have open
    std::vector<void*> own;
    std::vector<Slice> slices;  // of each rank
  };
  // The bucket in a neighbour's partial sum.
  std::byte* at(const Moved& moved, int rank, size_t partial) const;
  int64_t offset_of(std::span<void* const> partials);
  void add_up(const Moved& moved);
  void send_sums(const Moved& moved) const;
  void copy_sums(const Moved& moved) const;
  Group::Ticket meet(const Meeting& meeting, bool last);

  Group& group_;
  Backend& backend_;
  const DeviceReach& reach_;
  SumOrder order_;
  DeviceSums sums_;
  DeviceSums::Shares shares_;  // without slices, which a bucket has
  std::vector<std::shared_ptr<Buffer>> own_;
  std::unique_ptr<PeerBuffers> peers_;  // from the first bucket on, where there are neighbours
};

// The partial sums of every worker of a group.
std::vector<std::vector<LeafRange>> partials_of(const Group& group, SumOrder order);
// The most that are added up at once.
int64_t exchange_sources(const Group& group, SumOrder order, const DeviceReach& reach);

}  // namespace lockstep
