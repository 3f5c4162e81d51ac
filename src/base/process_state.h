// What the kernel says about another process.
#pragma once
#include <sys/types.h>

namespace lockstep {

// Whether it stands still because of SIGSTOP, SIGTSTP or a debugger. False for one that is not there.
bool process_is_stopped(pid_t pid);

}  // namespace lockstep
