// What must hold of any bytes that are given as a safetensors file.
#pragma once
#include <string_view>

namespace lockstep::testing {

// Parses the header; the tensors of one that parses must fill the file, and a header written for them must
// parse to the same. Returns whether it was a safetensors file. Throws for anything but a UserError: that is
// a bug.
bool check_safetensors(std::string_view file);

}  // namespace lockstep::testing
