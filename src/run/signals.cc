#include "run/signals.h"

#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "launch/signal_descriptor.h"

namespace lockstep {
SignalWatch::SignalWatch(bool speaks) : speaks_(speaks), watched_(signals_that_end_runs()) {
  std::signal(SIGPIPE, SIG_IGN);
  pthread_sigmask(SIG_BLOCK, &watched_, &before_);
  thread_ = std::thread([this] { wait_for_signals(); });
}

SignalWatch::~SignalWatch() {
  ending_ = true;
  pthread_kill(thread_.native_handle(), SIGINT);  // wakes it
  thread_.join();
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

void SignalWatch::wait_for_signals() {
  for (;;) {
    int signal = 0;
    sigwait(&watched_, &signal);
    if (ending_) return;
    if (takes(signal)) continue;
    pthread_sigmask(SIG_UNBLOCK, &watched_, nullptr);
    std::raise(signal);  // with nobody to handle it
  }
}

bool SignalWatch::takes(int signal) {
  if (!begun_) {
    say(signal, " before the first step: there is nothing to save");
    return false;
  }
  if (insisted_ && insists(signal)) {
    say(signal, " again: ends at once; started again, the run goes on from its last checkpoint");
    return false;
  }
  insisted_ = insisted_ || insists(signal);
  if (caught_ != 0) return true;
  caught_ = signal;
  say(signal,
      ": the run saves a checkpoint and ends after the step at hand; a second SIGINT or SIGTERM ends it "
      "at once");
  return true;
}

void SignalWatch::say(int signal, std::string_view text) const {
  if (!speaks_) return;
  // A terminal that is paused must not keep the next signal from being taken.
  pollfd error = {STDERR_FILENO, POLLOUT, 0};
  if (poll(&error, 1, 0) <= 0) return;
  const std::string line =
      fmt::format("{}SIG{}{}\n", isatty(STDERR_FILENO) == 1 ? "\r\x1b[K" : "", sigabbrev_np(signal), text);
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace lockstep
