// StepEngine: who makes the steps of a run that does not make them itself. TrainRun then has no part in
// gradients and updates: it decides about each step that comes, and asks for the state where it needs it, to
// evaluate, to save, and at the end. Parameter servers and their workers are one (run/async_coordinator.h).
#pragma once
#include <functional>
#include <string>

#include "observe/records.h"
#include "train/step/train_step.h"

namespace lockstep {

class StepEngine {
 public:
  virtual ~StepEngine() = default;

  // Once, before the first step: the state of the run's TrainStep is that after so many steps. `say` tells
  // people something.
  virtual void begin(int64_t step, std::function<void(const std::string& text)> say) = 0;
  // The step to go on until, at most `last`; a run that is repeated may end sooner.
  virtual int64_t last_step(int64_t last) const = 0;
  // Waits for the step after those that were decided about. `request` is asked as it is by TrainStep.
  virtual StepResult next(const Request& request) = 0;
  // What became of it.
  virtual void apply(double lr) = 0;
  virtual void skip() = 0;
  // Where the time of that step went, which took so long.
  virtual StepShares shares(double seconds) const = 0;
  // Brings the state after all steps that were decided about into the run's TrainStep.
  virtual void gather() = 0;
  // Whether that is what it holds.
  virtual bool is_gathered() const = 0;
  // All that was decided is on the disk, where it is written down.
  virtual void sync() = 0;
  // From work of the run that others wait for.
  virtual void still_working() = 0;
  // The run is over: in words, why.
  virtual void finish(const std::string& why) = 0;
  virtual void fill(RunSummary& summary) const = 0;
};

}  // namespace lockstep
