// What to say about a key that nobody knows: where it belongs, or which known one is nearest.
#pragma once
#include <string>
#include <string_view>

namespace lockstep {

// `section` is the path of the table that it stands in, "" at the top.
std::string unknown_key(const std::string& place, std::string_view section, std::string_view key);

}  // namespace lockstep
