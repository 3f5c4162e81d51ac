// SignalWatch: SIGTERM and SIGINT ask a run to end after the step at hand. A second one ends the process at
// once, as if nobody had watched.
#pragma once

namespace lockstep {

class SignalWatch {
 public:
  SignalWatch();
  ~SignalWatch();  // as it was before
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

  // The signal that came; 0: none.
  int caught() const;
};

}  // namespace lockstep
