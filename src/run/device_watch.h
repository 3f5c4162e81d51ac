// DeviceWatch: asks a device once a second what it is doing, on a thread of its own, for metrics.jsonl and
// the summary.
#pragma once
#include <array>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "base/device_use.h"
#include "observe/records.h"

namespace lockstep {

// Means and peaks of what was seen, each over the moments that had the figure.
class DeviceUses {
 public:
  void add(const DeviceUse& use);
  const std::optional<DeviceUse>& latest() const { return latest_; }
  // None where nothing was seen.
  std::optional<DeviceSummary> summary() const;

 private:
  struct Figure {
    double sum = 0, peak = 0;
    int64_t count = 0;
  };
  static constexpr size_t kFigures = 5;

  std::optional<DeviceUse> latest_;
  int64_t samples_ = 0;
  std::array<Figure, kFigures> figures_;
};

class DeviceWatch {
 public:
  // `open` is called on the thread; where it gives null, nothing is ever seen.
  using Open = std::function<std::unique_ptr<DeviceMonitor>()>;
  explicit DeviceWatch(Open open, std::chrono::milliseconds every = std::chrono::seconds(1));
  ~DeviceWatch();
  DeviceWatch(const DeviceWatch&) = delete;
  DeviceWatch& operator=(const DeviceWatch&) = delete;

  std::optional<DeviceUse> latest() const;
  std::optional<DeviceSummary> summary() const;

 private:
  void watch(const Open& open, std::chrono::milliseconds every);

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  DeviceUses uses_;
  std::thread thread_;
};

}  // namespace lockstep
