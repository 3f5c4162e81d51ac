// What the launchers of MPI libraries set. None of them says where rank 0 is when there are several hosts.
#include "base/error.h"
#include "launch/families.h"

namespace lockstep {
namespace {

struct MpiNames {
  std::string_view family, rank, size, local_rank, local_size;
};

std::optional<WorkerPlace> mpi_placement(const Variables& variables, const MpiNames& names) {
  if (!find_variable(variables, names.rank) && !find_variable(variables, names.size)) return std::nullopt;
  WorkerPlace placement;
  placement.family = names.family;
  placement.size = need_integer(variables, names.size, 1, kMostWorkers, names.rank);
  placement.rank = need_integer(variables, names.rank, 0, placement.size - 1, names.size);
  placement.said = fmt::format("{}={} {}={}", names.rank, placement.rank, names.size, placement.size);
  if (find_variable(variables, names.local_rank) && find_variable(variables, names.local_size)) {
    placement.local_size = need_integer(variables, names.local_size, 1, placement.size, names.local_rank);
    placement.local_rank =
        need_integer(variables, names.local_rank, 0, placement.local_size - 1, names.local_size);
  } else {
    place_at_loopback(placement, variables);
  }
  for (const std::string_view job : {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"})
    if (const auto id = find_variable(variables, job)) {
      placement.master_port = port_of_job(*id);
      break;
    }
  place_master(placement, variables);
  return placement;
}

}  // namespace

std::optional<WorkerPlace> open_mpi_placement(const Variables& variables) {
  return mpi_placement(variables, {"OpenMPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                                   "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"});
}

std::optional<WorkerPlace> mpich_placement(const Variables& variables) {
  return mpi_placement(variables, {"MPICH", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"});
}

std::optional<WorkerPlace> mvapich_placement(const Variables& variables) {
  return mpi_placement(variables, {"MVAPICH", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE",
                                   "MV2_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_LOCAL_SIZE"});
}

}  // namespace lockstep
