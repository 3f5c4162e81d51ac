// Resolve: what follows from several values at once, and whether this version can run it.
//
// Batch arithmetic: a step has M = global_batch / microbatch microbatches; leaf v of V accumulates M / V of
// them. V, the step counts and the peak learning rate follow from the job and its model and data alone, never
// from the machine.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "job/spec.h"

namespace lockstep {

// What the job file does not say; unknown ones leave what depends on them open.
struct JobFacts {
  std::optional<int64_t> parameters;
  std::optional<int64_t> train_samples;
};

struct ResolvedJob {
  int64_t microbatches = 1;      // M, per step
  int64_t leaves = 1;            // V
  std::optional<int64_t> steps;  // open if epochs are given and the samples unknown
  std::optional<int64_t> warmup_steps;
  std::optional<int64_t> decay_steps;            // of the fall; open for inverse_sqrt and constant too
  std::optional<int64_t> compress_warmup_steps;  // 0 where nothing is left out of gradients
  std::optional<int64_t> eval_every;
  std::optional<int64_t> checkpoint_every;
  double peak_lr = 0;
  Metric early_stop_metric = Metric::kLoss;
  std::vector<std::string> notes;  // how the figures came about, one sentence each
};

// Throws a UserError for values that cannot hold together or are not there yet.
ResolvedJob resolve(const JobSpec& spec, const JobFacts& facts = {});

// The largest power of two that divides M, at most 16 below 300M parameters, 8 below 3B, 4 above.
int64_t default_leaves(int64_t microbatches, int64_t parameters);
// Steps of a span: a share of the run is rounded up, so are the steps that take a number of samples.
std::optional<int64_t> steps_of(const StepSpan& span, std::optional<int64_t> run_steps, int64_t global_batch);

}  // namespace lockstep
