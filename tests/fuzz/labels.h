// What must hold of any bytes that are given as the labels.json of a run.
#pragma once
#include <string_view>

namespace lockstep::testing {

// What is read must come back when it is written and read again, and encode labels of any kind or refuse
// them. Returns whether it was one. Throws for anything but a UserError: that is a bug.
bool check_labels(std::string_view text);

}  // namespace lockstep::testing
