#include "fuzz/launch_environment.h"

#include "base/error.h"
#include "launch/environment.h"

namespace lockstep::testing {
namespace {

Variables variables_of(std::string_view text) {
  Variables variables;
  while (!text.empty()) {
    const size_t end = text.find_first_of(std::string_view("\n\0", 2));
    const std::string_view entry = text.substr(0, end);
    const size_t equals = entry.find('=');
    if (equals != std::string_view::npos)
      variables.emplace(entry.substr(0, equals), std::string(entry.substr(equals + 1)));
    text = end == std::string_view::npos ? "" : text.substr(end + 1);
  }
  return variables;
}

}  // namespace

bool check_launch_environment(std::string_view text) {
  std::optional<WorkerPlace> placement;
  try {
    placement = placement_from(variables_of(text));
  } catch (const UserError&) {
    return false;
  }
  if (!placement) return false;
  LOCKSTEP_CHECK(placement->rank >= 0 && placement->rank < placement->size, "{}", describe(*placement));
  LOCKSTEP_CHECK(placement->local_rank >= 0 && placement->local_rank < placement->local_size &&
                     placement->local_size <= placement->size,
                 "{}, {} of {} on its host", describe(*placement), placement->local_rank,
                 placement->local_size);
  LOCKSTEP_CHECK(placement->master_port >= 1 && placement->master_port <= 65535, "port {}",
                 placement->master_port);
  LOCKSTEP_CHECK(!placement->master_addr.empty(), "{}", describe(*placement));
  return true;
}

}  // namespace lockstep::testing
