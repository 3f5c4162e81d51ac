#include "train/evaluate/early_stop.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "train/evaluate/eval_result.h"

namespace lockstep {

EarlyStop::EarlyStop(std::string metric, int64_t patience, double min_delta)
    : metric_(std::move(metric)), patience_(patience), min_delta_(min_delta) {
  LOCKSTEP_CHECK(patience >= 0 && min_delta >= 0, "patience {}, min_delta {}", patience, min_delta);
}

bool EarlyStop::update(double value) {
  const bool better =
      !std::isnan(value) &&
      (!best_ || (is_better(metric_, value, *best_) && std::fabs(value - *best_) > min_delta_));
  if (better) best_ = value;
  without_progress_ = better ? 0 : without_progress_ + 1;
  return should_stop();
}

nlohmann::json EarlyStop::state() const {
  return {{"best", best_ ? nlohmann::json(*best_) : nlohmann::json()},
          {"without_progress", without_progress_}};
}

void EarlyStop::restore(const nlohmann::json& state) {
  const nlohmann::json& best = state.at("best");
  best_ = best.is_null() ? std::nullopt : std::optional(best.get<double>());
  without_progress_ = state.at("without_progress").get_ref<const int64_t&>();
}

}  // namespace lockstep
