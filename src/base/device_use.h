// DeviceUse: what a device was doing at a moment. A figure that its driver does not give is absent.
#pragma once
#include <memory>
#include <optional>

namespace lockstep {

struct DeviceUse {
  std::optional<double> utilization = {};   // share of the last moments in which any kernel ran
  std::optional<double> memory_bytes = {};  // in use, by all processes
  std::optional<double> sm_mhz = {};        // clock of the multiprocessors
  std::optional<double> power_w = {};
  std::optional<double> temperature_c = {};

  bool operator==(const DeviceUse&) const = default;
};

class DeviceMonitor {
 public:
  virtual ~DeviceMonitor() = default;
  virtual DeviceUse now() = 0;
};

}  // namespace lockstep
