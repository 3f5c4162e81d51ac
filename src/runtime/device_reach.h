// DeviceReach: how the devices of a group's workers reach each other.
//
// Neighbours, workers of one host who can open what every one of them exports, read each other's memory.
// Where not all are neighbours, devices send each other messages: between two hosts every worker has a
// partner on the other, to whom it sends what its neighbours copy from there, so that nothing crosses twice.
// Where neither works, and where the job says so, what travels passes through memory of the host. All workers
// of a group decide alike.
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backend/device_messages.h"
#include "backend/device_sharing.h"
#include "comm/group.h"

namespace lockstep {

// Ranks one after the other.
struct RankRange {
  int first = 0, count = 1;
  int end() const { return first + count; }
  bool has(int rank) const { return rank >= first && rank < end(); }
  bool operator==(const RankRange&) const = default;
};

// Buffers of all neighbours, as this worker reaches them. Its own go back when nobody has them open.
class PeerBuffers {
 public:
  ~PeerBuffers();
  PeerBuffers(const PeerBuffers&) = delete;
  PeerBuffers& operator=(const PeerBuffers&) = delete;

  std::byte* at(int rank, size_t buffer) const;

 private:
  friend class DeviceReach;
  PeerBuffers(Group& group, RankRange near, DeviceSharing& sharing, std::vector<std::shared_ptr<Buffer>> own);

  DeviceSharing& sharing_;
  RankRange near_;
  int rank_;
  std::vector<std::shared_ptr<Buffer>> own_;
  std::vector<std::vector<std::unique_ptr<Buffer>>> opened_;  // by rank
  HostBuffer closed_;                                         // a mark of each rank
};

// Memory of neighbours, messages to everybody, or both.
enum class ReachBy : uint8_t { kBoth, kMemory, kMessages };

class DeviceReach {
 public:
  // The most that are added up at once, where workers reach each other so.
  using Sources = std::function<int64_t(const DeviceReach&)>;
  // All ranks call it together. UserError where the job asks for what is not there.
  DeviceReach(Group& group, Backend& backend, const DeviceWay& wanted, const Sources& sources,
              ReachBy by = ReachBy::kBoth);

  bool is_direct() const { return why_not_.empty(); }
  // "cuda_ipc", "nccl", "cuda_ipc and nccl", or "memory of the host (why)".
  std::string text() const;
  DeviceSharing& sharing() const { return *sharing_; }
  // Of what neighbours may open.
  std::shared_ptr<Buffer> allocate(int64_t bytes) const {
    sharing_->reap();
    return sharing_->allocate(bytes);
  }
  // All ranks call it together, each with as many buffers as it has.
  std::unique_ptr<PeerBuffers> open(std::vector<std::shared_ptr<Buffer>> own) const;

  // The workers whose memory this one reaches, itself among them.
  const RankRange& near() const { return hosts_[host_of(group_.rank())]; }
  // All workers, neighbours beside each other.
  const std::vector<RankRange>& hosts() const { return hosts_; }
  size_t host_of(int rank) const;
  // Whether any worker has some.
  bool has_neighbours() const { return hosts_.size() < static_cast<size_t>(group_.size()); }
  bool sends() const { return far_ != nullptr; }
  // Who of a host exchanges with a worker of another.
  int partner(const RankRange& host, int rank) const {
    return host.first + (rank - hosts_[host_of(rank)].first) % host.count;
  }
  // Whose partner this one is, on other hosts.
  const std::vector<int>& partners() const { return partners_; }
  // The subtrees that the workers of a host can add up of what each has.
  struct HostSum {
    LeafRange leaves;
    std::vector<std::pair<int, size_t>> of = {};  // rank and which of its parts, in the order of leaves
  };
  static std::vector<HostSum> host_sums(const RankRange& host, int64_t leaves,
                                        const std::vector<std::vector<LeafRange>>& parts);
  // How many sums come together here, of what each worker has: neighbours' one by one, others' by host.
  int64_t sources(int64_t leaves, const std::vector<std::vector<LeafRange>>& parts) const;

  // Between a meeting of the group and the next, on its thread, and the same on all ranks. What goes wrong is
  // thrown by confirm(), to be called after the next meeting: where a peer has gone, that one says who.
  void exchange(std::span<const DeviceMessages::Part> sent,
                std::span<const DeviceMessages::Part> received) const;
  void sum(DType dtype, void* data, int64_t count) const;
  void confirm() const;

 private:
  struct Far {
    std::unique_ptr<DeviceMessages> messages;
    std::exception_ptr failure = {};
  };
  // Each "" where there is nothing in the way.
  std::string refusal(DeviceRoute wanted) const;
  std::string meet_neighbours();
  std::string try_allocation();
  std::string try_opening();
  std::string join_far(DeviceMessenger* messenger, std::chrono::milliseconds deadline);
  void stand_alone();

  Group& group_;
  DeviceSharing* sharing_;
  std::shared_ptr<Buffer> probe_;
  std::vector<RankRange> hosts_;
  std::vector<int> partners_;
  std::unique_ptr<Far> far_;
  std::string far_name_;
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
