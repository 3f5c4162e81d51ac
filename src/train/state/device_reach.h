// DeviceReach: whether the workers of a group reach each other's device memory, and how they open it.
//
// They do where all of them are of one host and every one can open what every other exports; else, and where
// the job says so, what travels passes through memory of the host. All workers of a group decide alike.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backend/device_sharing.h"
#include "comm/group.h"
#include "train/sums/reduce_options.h"

namespace lockstep {

// Buffers of all workers of a group, as this one reaches them. Its own go back when nobody has them open.
class PeerBuffers {
 public:
  ~PeerBuffers();
  PeerBuffers(const PeerBuffers&) = delete;
  PeerBuffers& operator=(const PeerBuffers&) = delete;

  std::byte* at(int rank, size_t buffer) const;

 private:
  friend class DeviceReach;
  PeerBuffers(Group& group, DeviceSharing& sharing, std::vector<std::shared_ptr<Buffer>> own);

  DeviceSharing& sharing_;
  int rank_;
  std::vector<std::shared_ptr<Buffer>> own_;
  std::vector<std::vector<std::unique_ptr<Buffer>>> opened_;  // by rank
  HostBuffer closed_;                                         // a mark of each rank
  int ranks_;
};

class DeviceReach {
 public:
  // All ranks call it together. `sources`: the most that are added up at once. UserError where the job asks
  // for what is not there.
  DeviceReach(Group& group, Backend& backend, DeviceRoute wanted, int64_t sources);

  bool is_direct() const { return why_not_.empty(); }
  // "cuda_ipc", or "memory of the host (why)".
  std::string text() const;
  DeviceSharing& sharing() const { return *sharing_; }
  // Of what peers may open.
  std::shared_ptr<Buffer> allocate(int64_t bytes) const {
    sharing_->reap();
    return sharing_->allocate(bytes);
  }
  // All ranks call it together, each with as many buffers as it has.
  std::unique_ptr<PeerBuffers> open(std::vector<std::shared_ptr<Buffer>> own) const;

 private:
  // "" where there is nothing in the way.
  std::string refusal(DeviceRoute wanted, int64_t sources);
  std::string try_allocation();
  std::string try_opening();

  Group& group_;
  DeviceSharing* sharing_;
  std::shared_ptr<Buffer> probe_;
  std::string why_not_;
};

// A buffer that somebody else holds too.
class HeldBuffer : public Buffer {
 public:
  explicit HeldBuffer(std::shared_ptr<Buffer> memory) : memory_(std::move(memory)) {}
  void* data() override { return memory_->data(); }
  int64_t bytes() const override { return memory_->bytes(); }

 private:
  std::shared_ptr<Buffer> memory_;
};

// How the partial sums of all ranks, in their order, are added up.
std::vector<uint8_t> merges_of(int64_t leaves, std::span<const LeafRange> parts);

}  // namespace lockstep
