// The signals that end a run, as something that poll can wait for. While it exists they are blocked in the
// thread that made it, and in threads started from there; other threads of the process must not take them
// either.
#pragma once
#include <csignal>

#include "launch/descriptor.h"

namespace lockstep {

// SIGTERM and SIGINT, whatever whoever started this process did about them; SIGHUP, SIGUSR1 and SIGUSR2
// unless they are ignored (nohup).
sigset_t signals_that_end_runs();
// SIGTERM and SIGINT: a second one ends a run at once. The others only ask.
inline bool insists(int signal) { return signal == SIGTERM || signal == SIGINT; }

class SignalDescriptor {
 public:
  SignalDescriptor();
  // They are blocked or not as they were before. Those that came and were not read are forgotten.
  ~SignalDescriptor();
  SignalDescriptor(const SignalDescriptor&) = delete;
  SignalDescriptor& operator=(const SignalDescriptor&) = delete;

  const Descriptor& descriptor() const { return descriptor_; }
  // The next signal that came; 0: none.
  int next();

 private:
  sigset_t before_{};
  Descriptor descriptor_;
};

}  // namespace lockstep
