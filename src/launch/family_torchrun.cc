// RANK and WORLD_SIZE: torchrun, PyTorchJob, and everybody who starts workers the way PyTorch documents.
#include "base/error.h"
#include "launch/families.h"

namespace lockstep {

std::optional<WorkerPlace> torchrun_placement(const Variables& variables) {
  if (!find_variable(variables, "RANK") && !find_variable(variables, "WORLD_SIZE")) return std::nullopt;
  WorkerPlace placement;
  placement.family = "torchrun";
  placement.size = need_integer(variables, "WORLD_SIZE", 1, kMostWorkers, "RANK");
  placement.rank = need_integer(variables, "RANK", 0, placement.size - 1, "WORLD_SIZE");
  placement.said = fmt::format("RANK={} WORLD_SIZE={}", placement.rank, placement.size);
  if (find_variable(variables, "LOCAL_RANK") || find_variable(variables, "LOCAL_WORLD_SIZE")) {
    placement.local_size = need_integer(variables, "LOCAL_WORLD_SIZE", 1, placement.size, "LOCAL_RANK");
    placement.local_rank =
        need_integer(variables, "LOCAL_RANK", 0, placement.local_size - 1, "LOCAL_WORLD_SIZE");
  } else {
    place_at_loopback(placement, variables);
  }
  placement.binds_nobody = find_variable(variables, "TORCHELASTIC_RUN_ID").has_value();
  place_master(placement, variables);
  // torchrun's agent listens on MASTER_PORT itself.
  if (find_variable(variables, "TORCHELASTIC_USE_AGENT_STORE") == "True")
    placement.master_port += placement.master_port < 65535 ? 1 : -1;
  return placement;
}

}  // namespace lockstep
