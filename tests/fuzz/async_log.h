// What must hold of any bytes that lie where the log of an asynchronous run should.
#pragma once
#include <string_view>

namespace lockstep::testing {

// What is read of them must be what the writer makes of it, byte for byte up to the tail. Returns whether
// they are a log. Throws for anything but a UserError: that is a bug.
bool check_async_log(std::string_view bytes);

}  // namespace lockstep::testing
