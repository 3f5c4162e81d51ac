// SignalWatch: SIGTERM and SIGINT ask a run to end after the step at hand. A second one ends the process at
// once, as if nobody had watched.
//
// A thread waits for them, and all others have them blocked. A handler would run on the stack of whatever
// thread is interrupted, and code that oneDNN generates keeps something else in the stack pointer meanwhile
// (seen with 2.6: it points into the heap): the kernel then writes the signal's frame over foreign memory.
#pragma once
#include <atomic>
#include <csignal>
#include <thread>

namespace lockstep {

class SignalWatch {
 public:
  // Before any other thread is started: they inherit what is blocked. Until begin() a signal ends the process
  // as it always does.
  SignalWatch();
  ~SignalWatch();  // as it was before
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

  void begin() { begun_ = true; }
  // The signal that came; 0: none.
  int caught() const { return caught_; }

 private:
  void wait_for_signals();

  sigset_t before_;
  std::atomic<bool> begun_ = false, ending_ = false;
  std::atomic<int> caught_ = 0;
  std::thread thread_;
};

}  // namespace lockstep
