// DeviceMessages: what devices send from their memory into that of others that they do not reach, such as
// those of other hosts.
//
// A device's messenger joins ranks by an invitation that one of them makes. What it puts on a device may wait
// there for the peers, so nobody begins before all are known to come (Group::meet).
#pragma once
#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"

namespace lockstep {

// What a job asks for: through memory of the host, in memory of the devices themselves, or by messages
// between these alone; else the best that there is.
enum class DeviceRoute : uint8_t { kAuto, kHost, kDevice, kMessages };
// What strategy.transport calls it.
constexpr std::string_view name_of(DeviceRoute route) {
  return std::array<std::string_view, 4>{"auto", "shm", "cuda_ipc", "nccl"}[static_cast<size_t>(route)];
}

struct DeviceWay {
  DeviceRoute route = DeviceRoute::kAuto;
  std::chrono::milliseconds deadline{60000};  // of a wait for other devices
};

class DeviceMessages {
 public:
  struct Part {
    int rank;  // to whom or from whom
    void* data;
    int64_t bytes;
  };

  virtual ~DeviceMessages() = default;
  // Behind what the communication stream has so far; returns when all of it has been sent and received. Those
  // who send to each other call it together. DeviceError where a peer fails or does not come by the deadline;
  // then these messages are of no use any more, for anybody.
  virtual void exchange(std::span<const Part> sent, std::span<const Part> received) = 0;
  // Everybody's, added up in the order that is fastest there. As exchange().
  virtual void sum(DType dtype, void* data, int64_t count) = 0;
};

class DeviceMessenger {
 public:
  virtual ~DeviceMessenger() = default;
  virtual std::string_view name() const = 0;
  // "" where it can be used.
  virtual std::string why_not() = 0;
  static constexpr size_t kInvitationBytes = 128;
  virtual std::vector<std::byte> invite() = 0;
  // All ranks call it together. DeviceError where they do not come to each other by the deadline.
  virtual std::unique_ptr<DeviceMessages> join(std::span<const std::byte> invitation, int rank, int size,
                                               std::chrono::milliseconds deadline) = 0;
};

}  // namespace lockstep
