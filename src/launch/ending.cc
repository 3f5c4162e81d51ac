#include "launch/ending.h"

#include <fmt/format.h>

#include <csignal>
#include <cstring>

namespace lockstep {

bool Ending::orderly() const {
  const int code = exit_code();
  if (by_signal && (number == SIGHUP || number == SIGUSR1 || number == SIGUSR2)) return true;
  return code == 75 || code == 128 + SIGINT || code == 128 + SIGTERM;
}

bool Ending::unanimous() const {
  return !by_signal && (number == 2 || number == 3 || number == 5 || number == 6);
}

std::string describe(const Ending& ending) {
  if (!ending.by_signal) return fmt::format("exited with code {}", ending.number);
  const char* name = sigabbrev_np(ending.number);
  const std::string signal =
      name != nullptr ? fmt::format("SIG{}", name) : fmt::format("signal {}", ending.number);
  if (ending.by_oom_killer) return fmt::format("killed by {}: the kernel's OOM killer", signal);
  const char* words = sigdescr_np(ending.number);
  return fmt::format("killed by {} ({})", signal, words != nullptr ? words : "unknown");
}

}  // namespace lockstep
