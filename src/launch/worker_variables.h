// The environment that a worker gets from our launcher: what PyTorch, TensorFlow and Vertex AI programs
// expect to find, and where our own rendezvous store is.
#pragma once
#include <string>

#include "launch/host_port.h"
#include "launch/variables.h"

namespace lockstep {

// What all workers of a run have in common, as one host's launcher knows it.
struct RunLayout {
  std::string run_id;
  int64_t nodes = 1;
  int64_t node_rank = 0;
  int64_t workers_per_node = 1;
  HostPort master = {"127.0.0.1", 29500};
  HostPort store = {"127.0.0.1", 0};  // LOCKSTEP_STORE
  std::string token;                  // LOCKSTEP_TOKEN
  std::string output;                 // the run's folder: AIP_* name places in it; none if empty
  std::string log_folder;             // for TORCHELASTIC_ERROR_FILE; none if empty
  int64_t restarts = 0;
  int64_t most_restarts = 0;
  int64_t cores = 1;     // that the workers of this host have together
  int live_columns = 0;  // of the terminal that shows worker 0's live line (base/live_line.h); 0: none

  int64_t workers() const { return nodes * workers_per_node; }
  int64_t rank_of(int64_t local_rank) const { return node_rank * workers_per_node + local_rank; }
};

// Where worker `rank` writes what it failed of (error_file.h); empty without a log folder.
std::string error_path(const RunLayout& layout, int64_t rank);

// `inherited`, with the variables of local worker `local_rank` set. What users set themselves and the
// launcher has no opinion of (CUDA_VISIBLE_DEVICES, OMP_NUM_THREADS, AIP_*) is left alone. CLUSTER_SPEC and
// TF_CONFIG are set when all workers are on this host; with more, an inherited one already names the hosts.
Variables worker_variables(const RunLayout& layout, int64_t local_rank, const Variables& inherited);

// Those of a process that serves the workers, and is none.
Variables server_variables(const RunLayout& layout, const Variables& inherited);

}  // namespace lockstep
