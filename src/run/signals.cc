#include "run/signals.h"

#include <atomic>
#include <csignal>

#include "base/error.h"

namespace lockstep {
namespace {

std::atomic<int> caught_signal = 0;
static_assert(std::atomic<int>::is_always_lock_free);

// Only what may be done in a handler: one atomic, and the default action for the second signal.
void on_signal(int signal) {
  caught_signal = signal;
  std::signal(SIGTERM, SIG_DFL);
  std::signal(SIGINT, SIG_DFL);
}

}  // namespace

SignalWatch::SignalWatch() {
  caught_signal = 0;
  for (const int signal : {SIGTERM, SIGINT})
    if (std::signal(signal, on_signal) == SIG_ERR) throw InternalError("cannot watch signal {}", signal);
}

SignalWatch::~SignalWatch() {
  for (const int signal : {SIGTERM, SIGINT}) std::signal(signal, SIG_DFL);
}

int SignalWatch::caught() const { return caught_signal; }

}  // namespace lockstep
