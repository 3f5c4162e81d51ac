// What must hold of any bytes that are given as a filter.
#pragma once
#include <string_view>

namespace lockstep::testing {

// A text that is a filter prints to a text that means the same, evaluates on records of any type, and is not
// ruled out by bounds where a record matches. Returns whether it was a filter. Throws for anything but a
// UserError: that is a bug.
bool check_filter(std::string_view text);

}  // namespace lockstep::testing
