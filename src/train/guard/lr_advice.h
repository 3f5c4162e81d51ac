// What the scaling rules and common practice say about a run's learning rate and warm-up; docs/guard.md cites
// them.
#pragma once
#include <string>
#include <vector>

#include "train/guard/diagnose.h"

namespace lockstep {

struct LrAdvice {
  bool adaptive = true;    // everything but sgd divides by the gradient's own size
  double batch_ratio = 1;  // k = global_batch / base_batch
  double rule_peak = 0;    // base times sqrt(k) for adaptive optimizers, times k for sgd
  double usual_peak = 0;   // the upper end of what is commonly used with this optimizer
  std::string usual_source;
  double safe_peak = 0;  // what to try instead: below the rule, the usual and the present peak
  // Settings that give safe_peak.
  std::vector<std::string> sets;
};
LrAdvice lr_advice(const TroubleFacts& facts);

struct WarmupAdvice {
  int64_t steps = 0;
  std::string value;   // for train.lr.warmup
  std::string source;  // the rule of thumb
};
WarmupAdvice warmup_advice(const TroubleFacts& facts);

}  // namespace lockstep
