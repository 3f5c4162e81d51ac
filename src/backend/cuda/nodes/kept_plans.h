// KeptPlans: plans that a library takes hundreds of milliseconds to make, made by threads of their own. Nodes
// of one shape share one, and what was made is stored on disk, from where it is read in a few.
#pragma once
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "backend/cuda/cudnn/library.h"
#include "backend/cuda/device.h"
#include "backend/cuda/disk_cache.h"
#include "base/error.h"
#include "base/log.h"

namespace lockstep::cuda {

// A plan and the handle that it was made with, which it runs with too.
template <typename Plan>
struct KeptPlan {
  std::shared_ptr<const Plan> plan;
  cudnnHandle_t handle = nullptr;
};

class KeptPlans {
 public:
  // Begins to make the plan, where it is not there. `description` says all that it depends on beside the
  // device and the library; Plan is made by `make` from a handle, or from a handle and what serialized()
  // gave.
  template <typename Plan, typename Make>
  void start(Device& device, const std::string& description, const Make& make) {
    find<Plan>(device, description, make);
  }
  // DeviceError where the library cannot make one.
  template <typename Plan, typename Make>
  KeptPlan<Plan> get(Device& device, const std::string& description, const Make& make) {
    const Made made = find<Plan>(device, description, make).get();
    return {std::static_pointer_cast<const Plan>(made.plan), made.handle};
  }

 private:
  struct Made {
    std::shared_ptr<const void> plan;
    cudnnHandle_t handle;
  };

  // While a plan is made, its handle is nobody else's.
  class Handle {
   public:
    explicit Handle(Device& device) : device_(device), handle_(device.take_cudnn_handle()) {}
    ~Handle() { device_.give_cudnn_handle_back(handle_); }
    Handle(const Handle&) = delete;
    Handle& operator=(const Handle&) = delete;
    cudnnHandle_t get() const { return handle_; }

   private:
    Device& device_;
    cudnnHandle_t handle_;
  };

  template <typename Plan, typename Make>
  std::shared_future<Made> find(Device& device, const std::string& description, const Make& make) {
    const std::lock_guard lock(mutex_);
    auto& made = made_[description];
    if (!made.valid())
      made = device.side_work().start(
          [this, &device, description, make] { return read_or_make<Plan>(device, description, make); });
    return made;
  }

  template <typename Plan, typename Make>
  Made read_or_make(Device& device, const std::string& description, const Make& make) const {
    const std::string key =
        fmt::format("{} x{} cudnn{} {}", device.properties().name, device.properties().multiProcessorCount,
                    cudnn().version, description);
    const Handle handle(device);
    const std::string stored = disk_.read(key, "plan");
    if (!stored.empty()) try {
        const PhaseTimes::Scope scope(device.times(), "cuDNN plans read");
        const std::vector<uint8_t> bytes(stored.begin(), stored.end());
        return {std::make_shared<const Plan>(handle.get(), bytes), handle.get()};
      } catch (const DeviceError& error) {
        log_debug("{} is made again: {}", description, error.what());
      }
    const PhaseTimes::Scope scope(device.times(), "cuDNN plans made");
    const auto plan = std::make_shared<const Plan>(make(handle.get()));
    const std::vector<uint8_t> bytes = plan->serialized();
    disk_.write(key, "plan", {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    return {plan, handle.get()};
  }

  std::mutex mutex_;
  std::map<std::string, std::shared_future<Made>> made_;
  DiskCache disk_;
};

}  // namespace lockstep::cuda
