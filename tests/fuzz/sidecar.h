// What must hold of any bytes that lie in .lockstep-index as something else than an index: the constants of
// transforms, the points at which a compressed file can be entered, sets of records.
#pragma once
#include <string_view>

namespace lockstep::testing {

// The first byte says which. What is taken is written again as it was, and using it stays inside of what it
// is about. Returns whether it was taken. Throws for anything but a UserError: that is a bug.
bool check_sidecar(std::string_view bytes);

}  // namespace lockstep::testing
