#include "base/process_state.h"

#include <fmt/format.h>

#include <fstream>
#include <string>

namespace lockstep {

bool process_is_stopped(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string line;
  std::getline(file, line);
  // The name in parentheses may itself hold anything.
  const size_t close = line.rfind(')');
  return close != std::string::npos && close + 2 < line.size() &&
         (line[close + 2] == 'T' || line[close + 2] == 't');
}

}  // namespace lockstep
