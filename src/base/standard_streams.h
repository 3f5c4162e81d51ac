// Descriptors 0 to 2 as whoever started the program left them: closed, full, or a file with a limit. What
// cannot be written is said with the reason, and nothing that the program opens is taken for one of them.
#pragma once

namespace lockstep {

// First thing in main(). A descriptor that is closed is held by one on which every use fails; otherwise the
// next file to be opened would get its number, and what goes to standard error would go into it. A write past
// `ulimit -f` becomes an error that can be told instead of a signal that ends the process.
void secure_standard_streams();

// Writes out what std::cout holds. False if it could not be written, after the reason was said on standard
// error; a reader who has gone (| head) is no such reason.
bool flush_standard_output();

}  // namespace lockstep
