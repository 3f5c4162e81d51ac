// What must hold of any bytes that somebody sends to a Reduction Server.
#pragma once
#include <string_view>

namespace lockstep::testing {

// Reads the bytes as frames of a worker: headers must encode to what they were read from, terms must read
// back as they were, and a reducer must take or refuse every part of a sum. Returns whether all of it was
// frames. Throws for anything but a CommError: that is a bug.
bool check_reduction_frame(std::string_view bytes);

}  // namespace lockstep::testing
