// Numbers as people write them in a job file. Nothing is accepted that C++ or YAML 1.1 would read in two
// ways.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

#include "job/spec.h"

namespace lockstep {

// 12, -3, 1e6; not 1_000, 0x10, 012 or 2.5. Nothing as well if it does not fit 64 bits.
std::optional<int64_t> read_whole(std::string_view text);
// Also .5, 1e-3, nan and inf (which callers refuse with their own words).
std::optional<double> read_number(std::string_view text);
// 200, 200 steps, 5%, 10000 samples.
std::optional<StepSpan> read_span(std::string_view text);
// 4096, 512MiB, 16 GiB, 2GB: powers of 1024 with the i, of 1000 without.
std::optional<int64_t> read_bytes(std::string_view text);

}  // namespace lockstep
