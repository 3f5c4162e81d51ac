// The families of variables by which launchers tell a process where it stands, one function each.
//
// A function gives nothing when its launcher did not start this process, and a UserError when it did and a
// variable is missing or malformed. MASTER_ADDR and MASTER_PORT hold for every family.
#pragma once
#include <optional>

#include "launch/host_port.h"
#include "launch/placement.h"
#include "launch/variables.h"

namespace lockstep {

inline constexpr int64_t kMostWorkers = 65536;

std::optional<WorkerPlace> torchrun_placement(const Variables& variables);
std::optional<WorkerPlace> slurm_placement(const Variables& variables);
std::optional<WorkerPlace> open_mpi_placement(const Variables& variables);
std::optional<WorkerPlace> mpich_placement(const Variables& variables);
std::optional<WorkerPlace> mvapich_placement(const Variables& variables);
std::optional<WorkerPlace> vertex_placement(const Variables& variables);
std::optional<WorkerPlace> tf_config_placement(const Variables& variables);

// Where rank 0 listens, for a process that CLUSTER_SPEC or TF_CONFIG gives a role that does not train, such
// as a reduction server's; nothing where neither lists one that trains.
std::optional<HostPort> cluster_master(const Variables& variables);

// Where rank 0 is: MASTER_ADDR and MASTER_PORT if set, otherwise this host, if all are on it. `known` is the
// host of rank 0 if the family tells it.
void place_master(WorkerPlace& placement, const Variables& variables, const std::string& known = "");

// For a family that does not say who is on this host: all are, where MASTER_ADDR is one that only this host
// reaches.
void place_at_loopback(WorkerPlace& placement, const Variables& variables);

// A port of this job's own for families that have none: two jobs on one host should not meet by chance.
int64_t port_of_job(std::string_view job);

}  // namespace lockstep
