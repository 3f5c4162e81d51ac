// What must hold of any bytes that come over the wire as a notice of another rank.
#pragma once
#include <string_view>

namespace lockstep::testing {

// A notice has the size of its bytes, and what it says can be printed. Returns whether it was one.
bool check_notice(std::string_view bytes);

}  // namespace lockstep::testing
