// Messages between GPUs that do not reach each other's memory: NCCL's sends, which take the way that it finds
// best (NVLink, InfiniBand, sockets).
#pragma once
#include <memory>

#include "backend/cuda/device.h"
#include "backend/device_messages.h"

namespace lockstep::cuda {

std::unique_ptr<DeviceMessenger> make_nccl_messenger(std::shared_ptr<Device> device);

}  // namespace lockstep::cuda
