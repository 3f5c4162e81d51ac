// clip: numbers below `low` become `low`, those above `high` become `high`; either may be left out.
// Settings: columns, low, high.
#pragma once
#include <memory>

#include "data/transform/transform.h"

namespace lockstep {

std::unique_ptr<Transform> make_clip(const TransformOptions& options);

}  // namespace lockstep
