// The angular frequencies of rope: radians per position for each pair of elements.
//
// Multiplication, division and comparison only, in a fixed order: no bit depends on the C library's pow.
#pragma once
#include <cstdint>
#include <vector>

#include "graph/attributes.h"

namespace lockstep {

// base^(i / pairs) for i in [0, pairs); base at least 1.
std::vector<float> rope_wavelengths(double base, int64_t pairs);
// 1 / base^(i / pairs), rounded before and after the division.
std::vector<float> rope_frequencies(double base, int64_t pairs);
// As the attributes of a rope node say: `frequencies` where given, else from `base`.
std::vector<float> rope_frequencies(const Attributes& attributes, int64_t pairs);

}  // namespace lockstep
