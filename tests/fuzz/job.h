// What must hold of any bytes that are given as a job file.
#pragma once
#include <string_view>

namespace lockstep::testing {

// Parses the text (a last line that starts with "--set " is an override); a job that parses must print to a
// text that parses to the same, and resolve or be refused. Returns whether it was a job. Throws for anything
// but a UserError: that is a bug.
bool check_job(std::string_view text);

}  // namespace lockstep::testing
