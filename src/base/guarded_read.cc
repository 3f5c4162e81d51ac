#include "base/guarded_read.h"

#include <ucontext.h>

#include <csetjmp>
#include <csignal>

namespace lockstep {
namespace {

struct Guard {
  sigjmp_buf back;
  GuardedRange range;
};

// Volatile: the handler reads it in the middle of code that, as the compiler sees it, cannot get there.
constinit thread_local Guard* volatile current = nullptr;

struct sigaction& handler_before() {
  static struct sigaction before {};
  return before;
}

void on_bus_error(int signal, siginfo_t* info, void* context) {
  const auto* address = static_cast<const std::byte*>(info->si_addr);
  Guard* const guard = current;
  if (guard != nullptr && address >= guard->range.begin && address < guard->range.end) {
    // The jump leaves the mask as it is here, and who calls this handler may have blocked more than we asked.
    pthread_sigmask(SIG_SETMASK, &static_cast<const ucontext_t*>(context)->uc_sigmask, nullptr);
    siglongjmp(guard->back, 1);
  }
  const struct sigaction& before = handler_before();
  if ((before.sa_flags & SA_SIGINFO) != 0) return before.sa_sigaction(signal, info, context);
  if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) return before.sa_handler(signal);
  sigaction(SIGBUS, &before, nullptr);
  raise(signal);
}

// Once for the process, and it stays: another thread may be reading.
void handle_bus_errors() {
  static const bool kInstalled = [] {
    struct sigaction ours {};
    ours.sa_sigaction = on_bus_error;
    ours.sa_flags = SA_SIGINFO;
    sigaction(SIGBUS, nullptr, &handler_before());
    return sigaction(SIGBUS, &ours, nullptr) == 0;
  }();
  (void)kInstalled;
}

}  // namespace

bool read_guarded(void (*read)(void* context, GuardedRange& range), void* context) {
  handle_bus_errors();
  Guard guard;
  Guard* const outer = current;
  if (sigsetjmp(guard.back, 0) != 0) {
    current = outer;
    return false;
  }
  current = &guard;
  read(context, guard.range);
  current = outer;
  return true;
}

bool bring_to_memory(const std::byte* begin, size_t bytes) {
  constexpr size_t kPage = 4096;  // or more
  GuardedRange wanted{begin, begin + bytes};
  return read_guarded(
      [](void* context, GuardedRange& range) {
        const auto& [from, to] = *static_cast<const GuardedRange*>(context);
        range.begin = from;
        range.end = to;
        const auto touch = [](const volatile std::byte* at) { (void)*at; };
        for (const std::byte* at = from; at < to; at += kPage) touch(at);
        if (from < to) touch(to - 1);
      },
      &wanted);
}

}  // namespace lockstep
