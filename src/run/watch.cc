#include "run/watch.h"

namespace lockstep {

Watch::Watch(const WatchOptions& options)
    : metrics_(options.folder + "/metrics.jsonl", options.resume_step),
      progress_(*options.out, progress_options_for(options.out_descriptor, options.total_steps)) {}

void Watch::step(const StepRecord& record) {
  metrics_.add(record);
  statistics_.add(record);
  progress_.step(record);
}

void Watch::evaluation(const EvalRecord& record) {
  metrics_.add(record);
  progress_.evaluation(record);
}

}  // namespace lockstep
