// How fields of CSV are written, and the values they hold.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep {

// What is wrong with how the field is written; nullptr: nothing.
const char* problem_of(std::string_view raw);
// The content of a field that has no problem. `unescaped` is written where the text itself does not hold it.
std::string_view unquote(std::string_view raw, std::string& unescaped);

// The number that a field holds, the same as std::from_chars gives; nothing if it holds something else, or
// more than 1e30.
std::optional<double> number_of(std::string_view field);
std::optional<int64_t> integer_of(std::string_view field);

bool is_utf8(std::string_view text);

}  // namespace lockstep
