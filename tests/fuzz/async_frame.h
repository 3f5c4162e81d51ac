// What must hold of any bytes that somebody sends to a process of an asynchronous run.
#pragma once
#include <string_view>

namespace lockstep::testing {

// Reads the bytes as frames: headers must encode to what they were read from, and payloads of a fixed size
// must read back. Returns whether all of it was frames. Throws for anything but a CommError: that is a bug.
bool check_async_frame(std::string_view bytes);

}  // namespace lockstep::testing
