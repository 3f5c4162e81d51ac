// Schedule: the learning rate of every step, as a pure function of the step and the job. docs/scaling.md
// explains the rules and cites them.
//
// Steps count from 1 as the optimizer's do. Step s of W warm-up steps has s/W of the peak, so the first step
// already moves the weights and step W has the peak. The courses are those of Hugging Face transformers:
// lr(s) is the peak times their lambda at s, for s > W too. (Their trainer takes the lambda at s - 1: with a
// warm-up its first step has rate 0, and everything comes one step later. Here a fall to 0 has rate 0 at the
// last step.)
//
// The bits are the same on every machine: IEEE arithmetic and portable_math only.
#pragma once
#include <cstdint>
#include <string>

#include "base/choices.h"

namespace lockstep {

struct ScheduleSettings {
  double base = 1e-3;      // good at base_batch
  int64_t base_batch = 0;  // 0: global_batch
  int64_t global_batch = 1;
  LrScaling scaling = LrScaling::kNone;
  LrDecay decay = LrDecay::kConstant;
  int64_t total_steps = 0;   // constant and inverse_sqrt do not need it
  int64_t warmup_steps = 0;  // W
  // D, how long the fall takes: from the end of the warm-up, or for wsd up to the end of the run. 0: wsd a
  // tenth of the run, others all that is left.
  int64_t decay_steps = 0;
  double min = 0;    // the rate after the fall; inverse_sqrt does not go below it
  double power = 1;  // of polynomial, and of wsd's fall
};

class Schedule {
 public:
  explicit Schedule(const ScheduleSettings& settings);

  double lr(int64_t step) const;
  double peak() const { return peak_; }
  // The base that gives this peak, by the same rule.
  double base_for(double peak) const;
  // "linear: 1e-4 x 256/32 = 8e-4 (Goyal et al., arXiv 1706.02677)"
  std::string reason() const;

  int64_t warmup_steps() const { return settings_.warmup_steps; }
  // The fall: step fall_begin() still has the peak, step fall_end() has min. The same step twice where
  // nothing falls to an end.
  int64_t fall_begin() const { return fall_begin_; }
  int64_t fall_end() const { return fall_end_; }
  const ScheduleSettings& settings() const { return settings_; }

 private:
  double share(int64_t step) const;  // between min (0) and peak (1), after the warm-up

  ScheduleSettings settings_;
  double peak_ = 0;
  int64_t fall_begin_ = 0;
  int64_t fall_end_ = 0;
};

// The factor for a momentum buffer v that has the learning rate in it (v = m v + lr g; p -= v) when the rate
// changes from one step to the next: without it, momentum from a step with a small rate counts too little
// (Goyal et al., section 3). The sgd op keeps u with p -= lr u, where v = lr u: it needs no factor, the rate
// of the current step already multiplies all of u.
double momentum_correction(double previous_lr, double lr);

}  // namespace lockstep
