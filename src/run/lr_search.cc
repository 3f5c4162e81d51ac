#include "run/lr_search.h"

#include <cmath>
#include <limits>

#include "backend/backend.h"
#include "prepare/fit.h"
#include "prepare/job_data.h"
#include "prepare/job_options.h"
#include "prepare/job_parts.h"
#include "prepare/job_reading.h"
#include "run/feeder.h"

namespace lockstep {

LrSearch search_lr(JobSpec spec, const LrRangeSettings& settings,
                   const std::function<void(const LrRange&)>& watch) {
  LrRange range(settings);  // refuses a range that is none before anything is read
  spec.strategy.zero = 0;   // this worker is alone, whatever the job will have
  const HostShare host = expected_share(spec);
  const auto backend = make_job_backend(spec, host);
  const JobParts parts = build_parts(std::move(spec), *backend, host);
  JobPlan plan = plan_job(parts.spec, parts.resolved, parts.model, parts.inputs, *backend);
  require_fit(parts.spec, parts.resolved, plan, parts.inputs, *backend, host);
  TrainStep train(std::move(plan.train), parts.model, *backend, parts.options);
  if (parts.pretrained) parts.pretrained->read(job_threads(parts.spec, host), nullptr, &train);
  if (parts.initial) start_from(*parts.initial, train);
  JobReading reading(parts.spec, host);
  Feeder feeder(*parts.data.train, job_order(parts), train, settings.steps, reading.train());
  for (int64_t step = 1;; ++step) {
    const StepResult result =
        train.accumulate([&](int64_t microbatch) { feeder.load(train, step, microbatch); }, step);
    // A gradient that is not finite would make the next loss so.
    const bool more =
        range.add(std::isfinite(result.grad_norm) ? result.loss : std::numeric_limits<double>::quiet_NaN());
    if (watch) watch(range);
    if (!more) return {std::move(range), parts.schedule};
    train.apply(range.lr(step));
  }
}

}  // namespace lockstep
