#include "launch/signal_descriptor.h"

#include <sys/signalfd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace lockstep {

SignalDescriptor::SignalDescriptor() {
  sigset_t watched;
  sigemptyset(&watched);
  sigaddset(&watched, SIGTERM);
  sigaddset(&watched, SIGINT);
  pthread_sigmask(SIG_BLOCK, &watched, &before_);
  // A signal that is ignored (SIGINT, for what a shell starts in the background) would never be read.
  for (const int signal : {SIGTERM, SIGINT}) std::signal(signal, SIG_DFL);
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
