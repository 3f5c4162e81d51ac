#include "run/watch.h"

namespace lockstep {

Watch::Watch(const WatchOptions& options)
    : tokens_per_step_(options.tokens_per_step),
      metrics_(options.folder + "/metrics.jsonl", options.resume_step, options.evaluates_again),
      tensorboard_(options.folder + "/tensorboard",
                   {.resume_step = options.resume_step,
                    .tokens_seen = options.resume_step.value_or(0) * options.tokens_per_step,
                    .clock = {}}),
      progress_(*options.out, progress_options_for(options.out_descriptor, options.total_steps)) {}

void Watch::step(const StepRecord& record) {
  metrics_.add(record);
  tensorboard_.add(record);
  statistics_.add(record);
  progress_.step(record);
}

void Watch::evaluation(const EvalRecord& record) {
  metrics_.add(record);
  tensorboard_.add(record);
  progress_.evaluation(record);
}

void Watch::rewind(int64_t step) { tensorboard_.rewind(step, step * tokens_per_step_); }

void Watch::finish(const RunSummary& summary) {
  progress_.finish();
  tensorboard_.finish(summary, statistics_.step_seconds());
}

}  // namespace lockstep
