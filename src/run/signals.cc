#include "run/signals.h"

#include <pthread.h>

namespace lockstep {
namespace {

constexpr int kSignals[] = {SIGTERM, SIGINT};

sigset_t watched() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : kSignals) sigaddset(&set, signal);
  return set;
}

}  // namespace

SignalWatch::SignalWatch() {
  // A signal that is ignored (SIGINT, for what a shell starts in the background) would never be waited for.
  for (const int signal : kSignals) std::signal(signal, SIG_DFL);
  const sigset_t set = watched();
  pthread_sigmask(SIG_BLOCK, &set, &before_);
  thread_ = std::thread([this] { wait_for_signals(); });
}

SignalWatch::~SignalWatch() {
  ending_ = true;
  pthread_kill(thread_.native_handle(), SIGINT);  // wakes it
  thread_.join();
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

void SignalWatch::wait_for_signals() {
  const sigset_t set = watched();
  for (;;) {
    int signal = 0;
    sigwait(&set, &signal);
    if (ending_) return;
    if (begun_ && caught_ == 0) {
      caught_ = signal;
      continue;
    }
    pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
    std::raise(signal);  // with nobody to handle it
  }
}

}  // namespace lockstep
