// Which tensors of a run's state go into which files of its checkpoints.
#pragma once
#include <set>
#include <string>
#include <vector>

#include "safetensors/header.h"
#include "train/state/train_state.h"

namespace lockstep {

struct StateFile {
  std::string name;
  SafetensorsHeader header;
  // In the order of the header. Those who read and write what is split know a tensor by where it stands in
  // the state's lists, so these are not copies.
  std::vector<const StateTensor*> tensors;
};

// The same on every worker. Without those of the model that are left out, and with the weights alone without
// what only the next step needs.
std::vector<StateFile> state_files(const TrainState& state, const std::set<std::string>& left_out,
                                   bool weights_alone);

}  // namespace lockstep
