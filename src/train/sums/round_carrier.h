// RoundCarrier: how the pieces of a leaf's bucket come to their owners in a round, and how these add them up
// (train/sums/round_sums.h): through memory of the host, or where workers reach each other's device memory,
// there.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "comm/leaf_stack.h"
#include "runtime/device_reach.h"
#include "train/state/ownership.h"

namespace lockstep {

class RoundCarrier {
 public:
  virtual ~RoundCarrier() = default;
  // Of this worker's leaf of the round, the bucket at `from`, final when the compute stream has come to this
  // point; null where it has none. `stack`: what is held before the round; it stays until the ticket is
  // waited for.
  virtual Group::Ticket start(int64_t round, int64_t bucket, const LeafStack& stack, const void* from,
                              const std::string& label) = 0;
  // After the last round of a step.
  virtual void finish() {}
  // From one of the elements on that this worker owns: the sum, on the device; and before finish() what is
  // held in a slot of the stack.
  virtual void* root(int64_t owned) const = 0;
  virtual void* held(int64_t slot, int64_t owned) const = 0;
  // Whether a group reaches that where it lies.
  virtual bool holds_in_host_memory() const = 0;
  virtual int64_t bytes() const = 0;
};

// What a carrier is made of.
struct CarriedPieces {
  Backend& backend;
  Group& group;
  DType dtype = DType::kF32;
  int64_t leaves = 1;         // of the tree
  LeafRange range = {};       // of them, those that the group sums
  Group* replicas = nullptr;  // with whom what is held is added up
  std::vector<Slice> buckets = {};
  std::vector<Slice> pieces = {};  // of them, this worker's

  int64_t element() const { return size_of(dtype); }
  int64_t owned() const;  // elements
};

std::unique_ptr<RoundCarrier> make_host_carrier(CarriedPieces pieces);
std::unique_ptr<RoundCarrier> make_device_carrier(CarriedPieces pieces, const DeviceReach& reach);

// Which leaf each worker sums in a round; none where there are no more.
std::vector<std::vector<LeafRange>> leaves_in(LeafRange range, int64_t round, int64_t workers);
// The most sums that an owner has after a round over these leaves of the tree.
int64_t kept_sums(LeafRange range, int64_t leaves, int64_t workers);
// What make_host_carrier takes for the way of buckets of so many elements.
int64_t carried_bytes(const Buckets& buckets, DType dtype, int64_t workers);

}  // namespace lockstep
