// EarlyStop: ends a run whose evaluations make no progress any more.
//
// Progress is a value that is better than the best by more than min_delta; NaN never is. The run stops after
// `patience` evaluations in a row without progress; with a patience of 0 it never does. The state travels
// with checkpoints, so that a resumed run stops where an undisturbed one would.
#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

namespace lockstep {

class EarlyStop {
 public:
  EarlyStop(std::string metric, int64_t patience, double min_delta);

  // Takes the value of one evaluation; whether the run should stop.
  bool update(double value);
  bool should_stop() const { return patience_ > 0 && without_progress_ >= patience_; }
  std::optional<double> best() const { return best_; }
  int64_t without_progress() const { return without_progress_; }

  nlohmann::json state() const;
  void restore(const nlohmann::json& state);

 private:
  std::string metric_;
  int64_t patience_;
  double min_delta_;
  std::optional<double> best_;  // the last value that was progress
  int64_t without_progress_ = 0;
};

}  // namespace lockstep
