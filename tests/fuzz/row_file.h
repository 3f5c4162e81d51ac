// What must hold of any bytes that are found as a file of kept rows.
#pragma once
#include <string_view>

namespace lockstep::testing {

// A file that is opened must be as long as its header says, which is written as it was read; its rows lie in
// it, and those are taken that their hashes vouch for. Returns whether it was one. Throws for anything but a
// UserError: that is a bug.
bool check_row_file(std::string_view bytes);

}  // namespace lockstep::testing
