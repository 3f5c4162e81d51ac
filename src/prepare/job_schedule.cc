#include "prepare/job_schedule.h"

#include "base/error.h"

namespace lockstep {

Schedule job_schedule(const JobSpec& spec, const ResolvedJob& job) {
  const LrSpec& lr = spec.train.lr;
  if (!job.steps || !job.warmup_steps)
    throw UserError(
        "{}: the number of steps is open until the samples of the data are counted; write `steps: 1000` "
        "instead of "
        "train.epochs",
        spec.where("train.epochs"));
  ScheduleSettings settings;
  settings.base = lr.base;
  settings.base_batch = lr.base_batch.value_or(0);
  settings.global_batch = spec.train.global_batch;
  settings.scaling = lr.scaling;
  settings.decay = lr.decay;
  settings.total_steps = *job.steps;
  settings.warmup_steps = *job.warmup_steps;
  settings.decay_steps = job.decay_steps.value_or(0);
  settings.min = lr.min;
  settings.power = lr.power;
  Schedule schedule(settings);
  LOCKSTEP_CHECK(schedule.peak() == job.peak_lr, "peaks {} and {}", schedule.peak(), job.peak_lr);
  return schedule;
}

}  // namespace lockstep
