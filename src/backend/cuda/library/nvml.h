// NVML, the driver's library of figures, loaded when a run wants them: its few functions that are used,
// declared here, since it comes with the driver and its header with nothing else that is needed.
#pragma once
#include <string>

#include "base/device_use.h"

namespace lockstep::cuda {

// MissingDevice where it cannot be loaded, DeviceError where it knows no device with this PCI address
// ("00000000:1B:00.0").
std::unique_ptr<DeviceMonitor> nvml_monitor(const std::string& pci_address);
// Such as "580.95.05"; errors as above.
std::string nvml_driver_version();
std::string nvml_path();

}  // namespace lockstep::cuda
