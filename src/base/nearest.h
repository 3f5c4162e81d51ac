// What to write instead of something that cannot be: the known name closest to it, the divisors next to it.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

int64_t edit_distance(std::string_view a, std::string_view b);
// "did you mean X?" when one is close, otherwise "known: A, B, ...".
std::string suggestion(std::string_view wrong, std::span<const std::string_view> known);
// The divisors of `whole` next to `wanted`, below and above.
std::vector<int64_t> nearest_divisors(int64_t whole, int64_t wanted);

}  // namespace lockstep
