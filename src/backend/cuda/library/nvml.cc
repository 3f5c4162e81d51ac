#include "backend/cuda/library/nvml.h"

#include <array>
#include <cstdint>

#include "backend/cuda/library/shared_library.h"
#include "base/error.h"

namespace lockstep::cuda {
namespace {

using Result = int;  // 0: success
constexpr int kSmClock = 1;
constexpr int kGpuSensor = 0;

struct Rates {
  unsigned gpu, memory;  // percent
};
struct Memory {
  uint64_t total, free, used;
};

struct Nvml {
  Result (*init)();
  const char* (*error_string)(Result);
  Result (*driver_version)(char*, unsigned);
  Result (*device_at)(const char* pci_address, void** device);
  Result (*rates)(void* device, Rates*);
  Result (*memory)(void* device, Memory*);
  Result (*clock)(void* device, int kind, unsigned* mhz);
  Result (*power)(void* device, unsigned* milliwatts);
  Result (*temperature)(void* device, int sensor, unsigned* celsius);
  std::string path;
};

Nvml load() {
  const SharedLibrary library({"libnvidia-ml.so.1"}, "watching a GPU");
  Nvml nvml{};
  library.find("nvmlInit_v2", nvml.init);
  library.find("nvmlErrorString", nvml.error_string);
  library.find("nvmlSystemGetDriverVersion", nvml.driver_version);
  library.find("nvmlDeviceGetHandleByPciBusId_v2", nvml.device_at);
  library.find("nvmlDeviceGetUtilizationRates", nvml.rates);
  library.find("nvmlDeviceGetMemoryInfo", nvml.memory);
  library.find("nvmlDeviceGetClockInfo", nvml.clock);
  library.find("nvmlDeviceGetPowerUsage", nvml.power);
  library.find("nvmlDeviceGetTemperature", nvml.temperature);
  nvml.path = library.path();
  if (const Result result = nvml.init(); result != 0)
    throw DeviceError("NVML: {}", nvml.error_string(result));
  return nvml;
}

// Loaded once and never shut down, as the driver itself.
const Nvml& nvml() {
  static const Nvml loaded = load();
  return loaded;
}

void require(Result result, const char* what) {
  if (result != 0) throw DeviceError("NVML: {}: {}", what, nvml().error_string(result));
}

class NvmlMonitor : public DeviceMonitor {
 public:
  explicit NvmlMonitor(const std::string& pci_address) {
    require(nvml().device_at(pci_address.c_str(), &device_), "finding the device");
  }

  // What a device does not give, such as its power in a virtual machine, is left out.
  DeviceUse now() override {
    DeviceUse use;
    Rates rates{};
    if (nvml().rates(device_, &rates) == 0) use.utilization = rates.gpu / 100.0;
    Memory memory{};
    if (nvml().memory(device_, &memory) == 0) use.memory_bytes = static_cast<double>(memory.used);
    unsigned value = 0;
    if (nvml().clock(device_, kSmClock, &value) == 0) use.sm_mhz = value;
    if (nvml().power(device_, &value) == 0) use.power_w = value * 1e-3;
    if (nvml().temperature(device_, kGpuSensor, &value) == 0) use.temperature_c = value;
    return use;
  }

 private:
  void* device_ = nullptr;
};

}  // namespace

std::unique_ptr<DeviceMonitor> nvml_monitor(const std::string& pci_address) {
  return std::make_unique<NvmlMonitor>(pci_address);
}

std::string nvml_driver_version() {
  std::array<char, 96> text{};
  require(nvml().driver_version(text.data(), text.size()), "the driver's version");
  return text.data();
}

std::string nvml_path() { return nvml().path; }

}  // namespace lockstep::cuda
