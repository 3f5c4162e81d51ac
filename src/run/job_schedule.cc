#include "run/job_schedule.h"

#include "base/error.h"

namespace lockstep {
namespace {

using Kind = ScheduleSettings::Kind;
using Scaling = ScheduleSettings::Scaling;

Scaling scaling_of(LrScaling scaling) {
  switch (scaling) {
    case LrScaling::kNone: return Scaling::kNone;
    case LrScaling::kLinear: return Scaling::kLinear;
    case LrScaling::kSqrt: return Scaling::kSqrt;
  }
  return Scaling::kNone;
}

Kind kind_of(LrDecay decay) {
  switch (decay) {
    case LrDecay::kConstant: return Kind::kConstant;
    case LrDecay::kLinear: return Kind::kLinear;
    case LrDecay::kCosine: return Kind::kCosine;
    case LrDecay::kPolynomial: return Kind::kPolynomial;
    case LrDecay::kInverseSqrt: return Kind::kInverseSqrt;
    case LrDecay::kWsd: return Kind::kWsd;
  }
  return Kind::kConstant;
}

}  // namespace

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
  settings.scaling = scaling_of(lr.scaling);
  settings.kind = kind_of(lr.decay);
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
