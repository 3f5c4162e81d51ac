// What must hold of any bytes that stand in a field of a table: numbers and times.
#pragma once
#include <string_view>

namespace lockstep::testing {

// A number is the one that std::from_chars reads, a moment is written and read again as itself, and the
// transforms that read either give values of their range, or refuse. Returns whether the text is a number or
// a time. Throws for anything but a UserError or a BadValue: that is a bug.
bool check_field(std::string_view text);

}  // namespace lockstep::testing
