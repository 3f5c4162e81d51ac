// Where a process stands among those that train together, as whoever started it says.
#pragma once
#include <cstdint>
#include <string>

namespace lockstep {

// The port that torchrun's documentation made customary; used when nothing says another.
inline constexpr int64_t kDefaultMasterPort = 29500;

struct WorkerPlace {
  std::string family = {};  // who says so: torchrun, Slurm, OpenMPI, ...
  std::string said = {};    // in which variables: "RANK=0 WORLD_SIZE=4"
  int64_t rank = 0;
  int64_t size = 1;
  // Among the processes of this host. One process a host if the family does not tell.
  int64_t local_rank = 0;
  int64_t local_size = 1;
  // The cores that the processes of this host may use together; 0 if the family does not tell.
  int64_t cores = 0;
  // An agent on this host started it, ours or torchrun's: whatever cores it may use, all of them may.
  bool binds_nobody = false;
  std::string host = {};  // this host's name as the family spells it; empty if it does not
  std::string master_addr = "127.0.0.1";
  // Where rank 0 listens for the others. Not always MASTER_PORT: under torchrun its own store has that one.
  int64_t master_port = kDefaultMasterPort;

  bool all_on_one_host() const { return local_size == size; }
};

// The name under which a worker appears in logs, errors and files.
inline std::string worker_name(int64_t rank) { return "worker-" + std::to_string(rank); }

// "torchrun (RANK=0 WORLD_SIZE=4) says worker 0 of 4"
std::string describe(const WorkerPlace& placement);

// How many workers each of the started processes runs when the job wants `workers` in all: 1, unless there is
// one process per host and the job wants several on each. UserError when the numbers do not go together.
int64_t workers_per_process(const WorkerPlace& placement, int64_t workers);

}  // namespace lockstep
