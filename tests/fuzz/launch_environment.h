// What must hold of any environment that a process may be started in.
#pragma once
#include <string_view>

namespace lockstep::testing {

// Takes the text as variables, NAME=value, each ended by a NUL byte or a line's end, and asks where they
// place this process. What is found must be possible: a rank below the size, a port that exists. Returns
// whether it was placed. Throws for anything but a UserError: that is a bug.
bool check_launch_environment(std::string_view text);

}  // namespace lockstep::testing
