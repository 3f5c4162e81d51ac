// One host's part of a run: the store if it is the first host, the workers, and how it ended.
#pragma once
#include <optional>

#include "launch/placement.h"
#include "launch/worker_set.h"

namespace lockstep {

// What the command line says about hosts, spelled as torchrun does.
struct NodeFlags {
  std::optional<int64_t> nnodes = {};
  std::optional<int64_t> node_rank = {};
  std::optional<int64_t> nproc_per_node = {};
  std::optional<std::string> master_addr = {};
  std::optional<int64_t> master_port = {};
};

// The flags, completed by PET_NNODES, PET_NODE_RANK, PET_NPROC_PER_NODE, PET_MASTER_ADDR and PET_MASTER_PORT,
// in which torchrun and Kubeflow look for those that are not given. UserError when a number is not possible.
NodeFlags with_environment(NodeFlags flags, const Variables& variables);

struct Nodes {
  int64_t count = 1;
  int64_t rank = 0;
  int64_t workers_per_node = 1;
  HostPort master = {"127.0.0.1", 0};  // port 0: any free one, if there is one host
};

// From flags; `workers` is what the job wants in all (0: not said). UserError when they contradict each
// other.
Nodes nodes_from(const NodeFlags& flags, int64_t workers);
// From a launcher that started one process per host.
Nodes nodes_from(const WorkerPlace& placement, int64_t workers_per_process);

struct LaunchRequest {
  Nodes nodes;
  std::vector<std::string> command;  // of every worker
  // Of processes that serve the workers, and how many this host runs (launch/worker_set.h).
  std::vector<std::string> server_command = {};
  int64_t servers = 0;
  std::string run_id;
  std::string output;         // the run's folder
  std::string log_folder;     // worker-N.log
  int64_t most_restarts = 0;  // of all workers after a crash of one, on one host
  Variables inherited = process_variables();
  int out = 1;
  int err = 2;
};

// Runs the workers of this host to their end. The token of the run is LOCKSTEP_TOKEN, which several hosts
// need; one host draws it. To be called as run_workers is.
WorkerSetResult launch(const LaunchRequest& request);

}  // namespace lockstep
