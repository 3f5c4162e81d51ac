// How a worker's process ended, in words and as an exit code.
#pragma once
#include <string>

namespace lockstep {

struct Ending {
  bool by_signal = false;
  int number = 0;  // the exit code, or the signal
  bool by_oom_killer = false;

  // As a shell counts: 128 and the signal.
  int exit_code() const { return by_signal ? 128 + number : number; }
  bool done() const { return !by_signal && number == 0; }
  // It was asked to end and did so properly: preempted with a checkpoint saved (75), SIGINT (130), SIGTERM
  // (143), or before its first step by SIGHUP, SIGUSR1 or SIGUSR2.
  bool orderly() const;
  // A verdict that all workers reach by themselves: bad input, does not fit, environment, diverged.
  bool unanimous() const;

  bool operator==(const Ending&) const = default;
};

// "exited with code 3", "killed by SIGSEGV (Segmentation fault)", "killed by SIGKILL: the kernel's OOM
// killer"
std::string describe(const Ending& ending);

}  // namespace lockstep
