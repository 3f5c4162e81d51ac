// What must hold of any bytes that are given as a block file.
#pragma once
#include <string_view>

namespace lockstep::testing {

// Reads all records, once with damage refused and once with it left out. Whatever is read must be the same
// when it is read in two parts. Returns whether all of it could be read. Throws for anything but a UserError:
// that is a bug.
bool check_block_file(std::string_view bytes);

}  // namespace lockstep::testing
