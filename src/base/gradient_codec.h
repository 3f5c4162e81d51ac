// How the sums of gradients are compressed, as chosen by name in a job file (strategy.reduce.compress).
#pragma once
#include "base/choices.h"

namespace lockstep {

// Every one rounds by a rule that belongs to a leaf or a node of the canonical tree, never to a worker: see
// docs/communication.md. kAuto is replaced by one of the others before the first step that counts.
enum class GradientCodec : uint8_t { kNone, kBf16, kInt8, kTopk, kPowersgd, kOnebit, kAuto };
LOCKSTEP_CHOICE_NAMES(GradientCodec, "none", "bf16", "int8", "topk", "powersgd", "onebit", "auto")

// Whether what is not sent is kept for the steps to come, by every leaf.
constexpr bool has_feedback(GradientCodec codec) {
  return codec == GradientCodec::kTopk || codec == GradientCodec::kPowersgd ||
         codec == GradientCodec::kOnebit;
}

}  // namespace lockstep
