// What a run knows beside its tensors, and its form in checkpoints and between workers.
#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>

#include "train/checkpoint/training_checkpoints.h"

namespace lockstep {

struct RunState {    // NOLINT(bugprone-exception-escape): the JSON library asserts in a move that is noexcept
  int64_t step = 0;  // done, skipped ones included: the data position follows from it
  int64_t skipped = 0;  // of these
  int64_t restarts = 0;
  double loss = 0;  // of the last step that was applied
  nlohmann::json guard, held_out;
};

// `steps_applied` is the optimizer's count.
nlohmann::json to_json(const RunState& state, int64_t steps_applied);
// Both throw nlohmann::json::exception where it is not what to_json makes.
RunState run_state_of(const nlohmann::json& json);
// The same of a checkpoint: throws UserError that names it.
RunState run_state_of(const TrainingCheckpoints::Restored& restored);
int64_t steps_applied_of(const nlohmann::json& json);

}  // namespace lockstep
