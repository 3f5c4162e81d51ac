#include "launch/signal_descriptor.h"

#include <sys/signalfd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace lockstep {

sigset_t signals_that_end_runs() {
  sigset_t set;
  sigemptyset(&set);
  // Ignored ones (SIGINT, for what a shell starts in the background) would never be waited for.
  for (const int signal : {SIGTERM, SIGINT}) {
    std::signal(signal, SIG_DFL);
    sigaddset(&set, signal);
  }
  for (const int signal : {SIGHUP, SIGUSR1, SIGUSR2}) {
    struct sigaction now {};
    if (sigaction(signal, nullptr, &now) == 0 && now.sa_handler != SIG_IGN) sigaddset(&set, signal);
  }
  return set;
}

SignalDescriptor::SignalDescriptor() {
  const sigset_t watched = signals_that_end_runs();
  pthread_sigmask(SIG_BLOCK, &watched, &before_);
  descriptor_ = Descriptor(signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!descriptor_) {
    const int error = errno;
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    throw DeviceError("signalfd: {}", std::strerror(error));
  }
}

SignalDescriptor::~SignalDescriptor() {
  while (next() != 0) {
  }
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

int SignalDescriptor::next() {
  signalfd_siginfo info{};
  const ssize_t got = read(descriptor_.get(), &info, sizeof info);
  return got == static_cast<ssize_t>(sizeof info) ? static_cast<int>(info.ssi_signo) : 0;
}

}  // namespace lockstep
