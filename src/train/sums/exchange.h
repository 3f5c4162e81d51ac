// Exchange: what happens to gradients between workers.
//
// LeafSums (train/sums/leaf_sums.h) keeps the books of leaves and the tree, and hands over this worker's
// partial sums bucket by bucket, while backward goes on. All workers end with the sum, or each with the slice
// of it that it owns. An exchange that has servers complete the tree is another implementation.
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "comm/group.h"

namespace lockstep {

// Who has the sum of a bucket: everyone, or each the slice_of it that is its own (ZeRO).
enum class SumFor : uint8_t { kAll, kOwners };

// One bucket on its way.
struct BucketTransfer {
  int64_t count = 0;  // elements
  SumFor whom = SumFor::kAll;
  std::string label = {};
  // No more will come in this step, and none is under way: it is run at once, since nothing is left to
  // compute meanwhile.
  bool last = false;
  // Called by the thread that moves it, before it does anything and after the sum has landed.
  std::function<void()> began = {}, ended = {};
};

class Exchange {
 public:
  virtual ~Exchange() = default;

  // Device memory for sums, of the kind that the exchange moves best.
  virtual std::unique_ptr<Buffer> allocate(int64_t bytes) = 0;
  // These elements of the partial sums, which lie in the order of leaves, are final when the compute stream
  // has come to this point. The sum lands in the first one: what is put on the compute stream after waiting
  // for the ticket finds it. None: it has landed.
  virtual Group::Ticket start(SumType type, std::span<void* const> partials,
                              const BucketTransfer& bucket) = 0;
  // A few numbers of the host's, at once.
  virtual void sum(SumType type, int64_t count, std::span<void* const> partials,
                   const std::string& label) = 0;
};

class DeviceReach;

// In the order of the canonical tree or the fast one. Where workers reach each other's device memory, there
// (train/sums/device_exchange.h); else over the group's all_reduce and reduce_scatter, through memory of the
// host where the device has its own. `reach`: null where it has not.
std::unique_ptr<Exchange> make_direct_exchange(Group& group, Backend& backend, SumOrder order,
                                               const DeviceReach* reach);

// Runs a sum at once or on the group's thread, as the bucket says.
Group::Ticket start_sum(Group& group, const Reduction& reduction, const BucketTransfer& bucket);

}  // namespace lockstep
