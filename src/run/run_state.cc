#include "run/run_state.h"

#include "base/error.h"

namespace lockstep {
namespace {

// Not get(): that would take any other number too, and one that is no int64 at that.
int64_t whole(const nlohmann::json& json, const char* name) {
  return json.at(name).get_ref<const int64_t&>();
}

}  // namespace

nlohmann::json to_json(const RunState& state, int64_t steps_applied) {
  return {{"step", state.step},        {"steps_applied", steps_applied},
          {"skipped", state.skipped},  {"restarts", state.restarts},
          {"loss", state.loss},        {"guard", state.guard},
          {"held_out", state.held_out}};
}

RunState run_state_of(const nlohmann::json& json) {
  return {.step = whole(json, "step"),
          .skipped = whole(json, "skipped"),
          .restarts = whole(json, "restarts"),
          .loss = json.at("loss").get<double>(),
          .guard = json.at("guard"),
          .held_out = json.at("held_out")};
}

RunState run_state_of(const TrainingCheckpoints::Restored& restored) {
  try {
    return run_state_of(restored.state);
  } catch (const nlohmann::json::exception& error) {
    throw UserError("{}: state.json is not what this version writes: {}", restored.path, error.what());
  }
}

int64_t steps_applied_of(const nlohmann::json& json) { return whole(json, "steps_applied"); }

}  // namespace lockstep
