// One function per likely cause of a bad step: the evidence for it in these facts, or nothing.
#pragma once
#include <optional>

#include "train/guard/diagnose.h"

namespace lockstep {

using CauseRule = std::optional<Cause> (*)(const TroubleFacts& facts);

// causes_data.cc: what came in.
std::optional<Cause> bad_input_cause(const TroubleFacts& facts);
std::optional<Cause> labels_masked_cause(const TroubleFacts& facts);
std::optional<Cause> unusual_samples_cause(const TroubleFacts& facts);
// causes_lr.cc: how far a step goes.
std::optional<Cause> learning_rate_cause(const TroubleFacts& facts);
std::optional<Cause> warmup_cause(const TroubleFacts& facts);
// causes_numbers.cc: what the numbers can hold.
std::optional<Cause> precision_cause(const TroubleFacts& facts);
std::optional<Cause> norm_overflow_cause(const TroubleFacts& facts);
std::optional<Cause> no_clipping_cause(const TroubleFacts& facts);
std::optional<Cause> large_activations_cause(const TroubleFacts& facts);

}  // namespace lockstep
