#include "base/phase_times.h"

#include <algorithm>

namespace lockstep {

PhaseTimes::Scope::~Scope() {
  times_.add(name_, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count());
}

void PhaseTimes::add(std::string_view name, double seconds) {
  const std::lock_guard lock(mutex_);
  auto found = std::ranges::find(phases_, name, &PhaseTime::name);
  if (found == phases_.end()) found = phases_.insert(found, {std::string(name), 0, 0});
  found->seconds += seconds;
  ++found->times;
}

std::vector<PhaseTime> PhaseTimes::all() const {
  const std::lock_guard lock(mutex_);
  return phases_;
}

}  // namespace lockstep
