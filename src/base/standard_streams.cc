#include "base/standard_streams.h"

#include <fcntl.h>
#include <stdio_ext.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <iostream>

namespace lockstep {

void secure_standard_streams() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(descriptor, F_GETFD) >= 0 || errno != EBADF) continue;
    // The lowest free number, which is this one: those below it are open by now.
    const int mode = descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY;
    if (open("/dev/null", mode) != descriptor) _exit(1);  // nobody could be told why
  }
  std::signal(SIGXFSZ, SIG_IGN);
}

bool flush_standard_output() {
  errno = 0;
  std::cout.flush();
  const bool written = std::fflush(stdout) == 0 && std::ferror(stdout) == 0 && !std::cout.fail();
  int error = errno;
  if (written) return true;
  // An earlier write has failed, and only the stream remembers that it did.
  if (error == 0 && write(STDOUT_FILENO, "\n", 1) < 0) error = errno;
  __fpurge(stdout);
  std::clearerr(stdout);
  std::cout.clear();
  if (error == EPIPE) return true;
  std::cerr << "lockstep: cannot write standard output"
            << (error == 0 ? std::string() : std::string(": ") + std::strerror(error)) << "\n";
  return false;
}

}  // namespace lockstep
