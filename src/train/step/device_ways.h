// DeviceWays: how the workers of a step reach each other's devices, in each of its groups
// (runtime/device_reach.h).
#pragma once
#include <memory>
#include <string>

#include "comm/mesh.h"
#include "runtime/device_transfers.h"
#include "train/step/train_plans.h"

namespace lockstep {

class DeviceWays {
 public:
  // All workers make it together. Devices that work in the host's memory need no ways.
  DeviceWays(const MeshGroups& groups, Backend& backend, const TrainOptions& options);

  // Of those who share out the state; null where nothing is exchanged between devices.
  const DeviceReach* owners() const { return owners_.get(); }
  // Of those who add up what all workers have: the same, or where several groups own everything, those who do
  // that for all groups.
  const DeviceReach* adders() const { return has_groups_ ? between_groups_.get() : owners_.get(); }
  // Of tensor ranks who reach each other's memory; else null.
  DeviceTransfers* tensor() const { return tensor_.get(); }
  bool owners_are_direct() const { return owners_ != nullptr && owners_->is_direct(); }
  // "cuda_ipc; between tensor ranks cuda_ipc"
  std::string text() const;

 private:
  bool has_groups_;
  std::unique_ptr<DeviceReach> owners_, between_groups_;
  std::unique_ptr<DeviceTransfers> tensor_;
};

}  // namespace lockstep
