// Numbers the way people write them in a sentence: 3e-4, 0.05, 1200; not 0.0003, 3.000e-04 or 1.2e+03.
#pragma once
#include <cstdint>
#include <string>

namespace lockstep {

// At most `digits` significant digits, no trailing zeros; powers of ten outside [0.01, 10^digits).
std::string short_number(double value, int digits = 3);

// 512 B, 1.5 KiB, 12 GiB.
std::string bytes_text(int64_t bytes);

}  // namespace lockstep
