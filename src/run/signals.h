// SignalWatch: SIGTERM, SIGINT, SIGHUP, SIGUSR1 and SIGUSR2 ask a run to end after the step at hand. A second
// SIGTERM or SIGINT ends the process at once, as if nobody had watched; a terminal that is closed may send
// SIGHUP twice, and a scheduler more than one of its warnings, so these only ever ask.
//
// A thread waits for them, and all others have them blocked. A handler would run on the stack of whatever
// thread is interrupted, and code that oneDNN generates keeps something else in the stack pointer meanwhile
// (seen with 2.6: it points into the heap): the kernel then writes the signal's frame over foreign memory.
#pragma once
#include <atomic>
#include <csignal>
#include <string_view>
#include <thread>

namespace lockstep {

class SignalWatch {
 public:
  // Before any other thread is started: they inherit what is blocked. Until begin() a signal ends the process
  // as it always does. SIGHUP (nohup), SIGUSR1 and SIGUSR2 that are ignored stay so. SIGPIPE is ignored from
  // here on: a reader who has gone (| head) is no reason to end a run. `speaks`: says on standard error what
  // a signal does.
  explicit SignalWatch(bool speaks);
  ~SignalWatch();  // as it was before
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

  void begin() { begun_ = true; }
  // The first signal that came; 0: none.
  int caught() const { return caught_; }

 private:
  void wait_for_signals();
  // Whether the run was asked, and goes on until it ends by itself.
  bool takes(int signal);
  void say(int signal, std::string_view text) const;

  const bool speaks_;
  sigset_t watched_, before_;
  std::atomic<bool> begun_ = false, ending_ = false;
  std::atomic<int> caught_ = 0;
  bool insisted_ = false;  // SIGTERM or SIGINT came
  std::thread thread_;
};

}  // namespace lockstep
