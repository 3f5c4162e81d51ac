// What a file descriptor shows on.
#pragma once

namespace lockstep {

bool is_terminal(int file_descriptor);
// Its columns; 80 where it is none or does not say.
int terminal_width(int file_descriptor);

}  // namespace lockstep
