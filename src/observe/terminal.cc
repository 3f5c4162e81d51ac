#include "observe/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

namespace lockstep {

bool is_terminal(int file_descriptor) { return isatty(file_descriptor) == 1; }

int terminal_width(int file_descriptor) {
  winsize size{};
  const bool known = ioctl(file_descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : 80;
}

}  // namespace lockstep
