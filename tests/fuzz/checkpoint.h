// What must hold of any bytes that are given as the manifest or the state of a checkpoint.
#pragma once
#include <string_view>

namespace lockstep::testing {

// Both return whether the text was one; it is then written and read again as itself. Both throw for anything
// but a UserError: that is a bug.
bool check_manifest(std::string_view text);
bool check_saved_state(std::string_view text);

}  // namespace lockstep::testing
