// Many values of one element type as another, each rounded to nearest as write_element() does it.
#pragma once
#include <cstdint>

#include "base/dtype.h"

namespace lockstep {

// At the speed of memory between f32 and bf16. Neither buffer need be aligned; they do not overlap.
void convert_elements(DType from, const void* source, DType to, void* target, int64_t count);

}  // namespace lockstep
