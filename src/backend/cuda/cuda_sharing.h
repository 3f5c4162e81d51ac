// Memory of a GPU that other processes of the host open: CUDA's handles for inter-process communication.
#pragma once
#include <memory>

#include "backend/cuda/device.h"
#include "backend/device_sharing.h"

namespace lockstep::cuda {

std::unique_ptr<DeviceSharing> make_cuda_sharing(std::shared_ptr<Device> device);

}  // namespace lockstep::cuda
