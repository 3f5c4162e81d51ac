// Guard: whether the update of a step is made, from the step's own numbers. docs/guard.md explains the rules.
//
// The decision is a pure function of the numbers of this and earlier steps: loss, gradient norm and count, as
// they leave the canonical sum. These have the same bits on every layout, so every worker decides alike
// without asking another, and a resumed run decides as the undisturbed one did.
//
// The order of a step: accumulate, decide, then what the decision says. After a rewind the trainer restores
// the checkpoint and calls after_rewind with the guard state that lay in it.
#pragma once
#include <cstdint>
#include <deque>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "base/choices.h"

namespace lockstep {

struct GuardSettings {
  NonFinitePolicy policy = NonFinitePolicy::kStop;
  int64_t max_skips = 3;    // steps skipped or rewound in the whole run before it stops
  double spike_factor = 0;  // above this many times the median is a spike; 0: not looked for
  int64_t spike_window = 50;
  double lr_cut = 0.5;
};

struct StepNumbers {
  int64_t step = 0;
  double loss = 0;  // mean over what is counted
  double grad_norm = 0;
  int64_t count = 0;  // samples or tokens that the loss counts
};

enum class Trouble : uint8_t {
  kNone,
  kNothingCounted,
  kNonFiniteLoss,
  kNonFiniteGradient,
  kSpikeGradient,
  kSpikeLoss,
};
std::string_view name_of(Trouble trouble);  // "non_finite_loss", as in metrics and diagnosis.json

struct Decision {
  enum class Action : uint8_t { kApply, kSkip, kRewind, kStop };

  Action action = Action::kApply;
  Trouble trouble = Trouble::kNone;
  std::string text;  // one sentence for the log; empty when nothing is wrong
};
std::string_view name_of(Decision::Action action);

// The last `capacity` values of a number, and their median.
class RunningMedian {
 public:
  explicit RunningMedian(int64_t capacity) : capacity_(capacity) {}

  void push(double value);
  // Whether half of the window is filled; before that a median says little.
  bool ready() const { return 2 * static_cast<int64_t>(values_.size()) >= capacity_; }
  // One of the values, for an even number the lower of the two in the middle: no arithmetic, no rounding.
  double median() const;

  const std::deque<double>& values() const { return values_; }
  void set_values(std::deque<double> values);

 private:
  int64_t capacity_;
  std::deque<double> values_;  // the oldest first
};

class Guard {
 public:
  explicit Guard(const GuardSettings& settings);

  // Takes note of the step; call once per step.
  Decision decide(const StepNumbers& numbers);
  // The learning rate of a step is the schedule's times this.
  double lr_factor() const { return lr_factor_; }
  int64_t skips() const { return skips_; }
  int64_t rewinds() const { return rewinds_; }

  // What a checkpoint carries; doubles keep their bits.
  nlohmann::json state() const;
  // Resuming a run: all of the state. Throws UserError when it is not one.
  void restore(const nlohmann::json& state);
  // After restoring the checkpoint that a rewind goes back to: its windows, but this run's count of skips and
  // rewinds and its learning-rate factor, of which a checkpoint that is older cannot know. A run that is
  // killed between the rewind and its next checkpoint resumes from the older state, meets the same step, and
  // rewinds again in the same way.
  void after_rewind(const nlohmann::json& restored);

 private:
  Trouble find_trouble(const StepNumbers& numbers) const;
  Decision decide_trouble(const StepNumbers& numbers, Trouble trouble);

  GuardSettings settings_;
  RunningMedian losses_;
  RunningMedian grad_norms_;
  int64_t skips_ = 0;
  int64_t rewinds_ = 0;
  double lr_factor_ = 1.0;
};

}  // namespace lockstep
