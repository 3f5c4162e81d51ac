// Inspection: what running a bad step again with checks on has shown. inspect.h makes it, diagnose.h reads
// it.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/non_finite.h"

namespace lockstep {

// A value of the batch that no model can take: not finite, or an index out of range.
struct BadInput {
  std::string column;
  int64_t row = 0;     // in the microbatch
  std::string record;  // where it comes from, as in "tx/train-00002.csv:418"; empty if that is not known
  std::string value;   // "nan", or "7, outside [0, 2)"
};

struct Inspection {
  std::optional<int64_t> microbatch;      // the first that is bad by itself; unset if none is
  std::optional<NonFiniteValue> first;    // the first bad value in it, in program order
  std::optional<std::string> parameter;   // nearest to that value, or bad itself
  bool parameter_was_bad = false;         // before this step: the update before made it so
  std::optional<std::string> bad_sum_of;  // a parameter whose summed gradient is not finite
  std::optional<BadInput> bad_input;
  std::vector<std::string> samples;  // of the microbatch; of the first bad value alone if its row is known
  std::vector<double> losses;        // mean loss per microbatch, as far as they were run
  double largest_gradient = 0;       // the largest finite magnitude in the summed gradients
  std::optional<bool> fp32_finite;   // the same microbatch computed in fp32; unset if it was not tried
};

}  // namespace lockstep
