#include "run/run_state.h"

namespace lockstep {

nlohmann::json to_json(const RunState& state, int64_t steps_applied) {
  return {{"step", state.step},        {"steps_applied", steps_applied},
          {"skipped", state.skipped},  {"restarts", state.restarts},
          {"loss", state.loss},        {"guard", state.guard},
          {"held_out", state.held_out}};
}

RunState run_state_of(const nlohmann::json& json) {
  return {.step = json.at("step").get<int64_t>(),
          .skipped = json.at("skipped").get<int64_t>(),
          .restarts = json.at("restarts").get<int64_t>(),
          .loss = json.at("loss").get<double>(),
          .guard = json.at("guard"),
          .held_out = json.at("held_out")};
}

int64_t steps_applied_of(const nlohmann::json& json) { return json.at("steps_applied").get<int64_t>(); }

}  // namespace lockstep
