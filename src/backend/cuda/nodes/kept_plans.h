// KeptPlans: plans that a library takes hundreds of milliseconds to make. Nodes of one shape share one, and
// what was made is stored on disk, from where it is read in a few.
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "backend/cuda/cudnn/library.h"
#include "backend/cuda/device.h"
#include "backend/cuda/disk_cache.h"
#include "base/error.h"

namespace lockstep::cuda {

// Plan: made from a handle and what serialized() gave.
template <typename Plan>
class KeptPlans {
 public:
  using Ptr = std::shared_ptr<const Plan>;

  // `description` says all that the plan depends on beside the device and the library. DeviceError where the
  // library cannot make one.
  template <typename Make>
  Ptr get(Device& device, const std::string& description, const Make& make) {
    const std::lock_guard lock(mutex_);
    const std::string here = fmt::format("{} {}", static_cast<const void*>(&device), description);
    Ptr plan = made_[here].lock();
    if (plan == nullptr) {
      plan = read_or_make(device, description, make);
      made_[here] = plan;
    }
    return plan;
  }

 private:
  template <typename Make>
  Ptr read_or_make(Device& device, const std::string& description, const Make& make) const {
    const std::string key =
        fmt::format("{} x{} cudnn{} {}", device.properties().name, device.properties().multiProcessorCount,
                    cudnn().version, description);
    const std::string stored = disk_.read(key, "plan");
    if (!stored.empty()) try {
        return std::make_shared<const Plan>(device.cudnn_handle(),
                                            std::vector<uint8_t>(stored.begin(), stored.end()));
      } catch (const DeviceError&) {
        // What cannot be read is made again.
      }
    const Ptr plan = std::make_shared<const Plan>(make(device.cudnn_handle()));
    const std::vector<uint8_t> bytes = plan->serialized();
    disk_.write(key, "plan", {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    return plan;
  }

  std::mutex mutex_;
  std::map<std::string, std::weak_ptr<const Plan>> made_;
  DiskCache disk_;
};

}  // namespace lockstep::cuda
