// "did you mean ...": the known name closest to what somebody wrote, by edit distance.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace lockstep {

int64_t edit_distance(std::string_view a, std::string_view b);
// "did you mean X?" when one is close, otherwise "known: A, B, ...".
std::string suggestion(std::string_view wrong, std::span<const std::string_view> known);

}  // namespace lockstep
