// SIGTERM and SIGINT as something that poll can wait for. While it exists they are blocked in the thread that
// made it, and in threads started from there; other threads of the process must not take them either.
#pragma once
#include <csignal>

#include "launch/descriptor.h"

namespace lockstep {

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
