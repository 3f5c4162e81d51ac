// How this process was started, recognised by the variables of the known launchers.
#pragma once
#include <optional>

#include "launch/placement.h"
#include "launch/variables.h"

namespace lockstep {

// Nothing when no launcher started it. Launchers may be nested (torchrun inside srun, one per host): then the
// one that counts the workers holds. UserError when two of them disagree, with what both say: a run in which
// every process believes to be worker 0 is worse than none.
std::optional<WorkerPlace> placement_from(const Variables& variables);

}  // namespace lockstep
