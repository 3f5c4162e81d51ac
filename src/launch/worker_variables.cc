#include "launch/worker_variables.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/error.h"
#include "base/live_line.h"
#include "launch/placement.h"

namespace lockstep {
namespace {

using Json = nlohmann::json;

void set_default(Variables& variables, const std::string& name, const std::string& value) {
  std::string& present = variables[name];
  if (present.empty()) present = value;
}

// Worker 0 under `chief`, the others under `worker`; addresses follow the master's port.
std::string cluster_json(const RunLayout& layout, int64_t rank, const std::string& chief,
                         const std::string& worker) {
  const auto address = [&](int64_t one) {
    // Ports wrap inside the range that needs no privileges.
    constexpr int64_t kFirst = 1024;
    const int64_t port = kFirst + (layout.master.port - kFirst + one) % (65536 - kFirst);
    return to_string(HostPort{layout.master.host, std::max<int64_t>(port, 1)});
  };
  Json cluster = {{chief, {address(0)}}};
  std::vector<std::string> others;
  for (int64_t one = 1; one < layout.workers(); ++one) others.push_back(address(one));
  if (!others.empty()) cluster[worker] = others;
  const Json task = {{"type", rank == 0 ? chief : worker}, {"index", std::max<int64_t>(rank - 1, 0)}};
  return Json{{"cluster", cluster}, {"task", task}, {"environment", "cloud"}}.dump();
}

}  // namespace

std::string error_path(const RunLayout& layout, int64_t rank) {
  if (layout.log_folder.empty()) return "";
  return fmt::format("{}/{}.error.json", layout.log_folder, worker_name(rank));
}

Variables worker_variables(const RunLayout& layout, int64_t local_rank, const Variables& inherited) {
  LOCKSTEP_CHECK(local_rank >= 0 && local_rank < layout.workers_per_node, "local rank {} of {}", local_rank,
                 layout.workers_per_node);
  const int64_t rank = layout.rank_of(local_rank);
  Variables variables = inherited;
  const auto set = [&](const char* name, const auto& value) { variables[name] = fmt::format("{}", value); };
  set("RANK", rank);
  set("WORLD_SIZE", layout.workers());
  set("LOCAL_RANK", local_rank);
  set("LOCAL_WORLD_SIZE", layout.workers_per_node);
  set("NODE_RANK", layout.node_rank);
  set("GROUP_RANK", layout.node_rank);
  set("MASTER_ADDR", layout.master.host);
  set("MASTER_PORT", layout.master.port);
  set("TORCHELASTIC_RUN_ID", layout.run_id);
  set("TORCHELASTIC_RESTART_COUNT", layout.restarts);
  set("TORCHELASTIC_MAX_RESTARTS", layout.most_restarts);
  variables.erase(kLiveColumnsVariable);
  if (rank == 0 && layout.live_columns > 0) set(kLiveColumnsVariable, layout.live_columns);
  // An outer torchrun's store is not the one of these workers.
  variables.erase("TORCHELASTIC_USE_AGENT_STORE");
  set("LOCKSTEP_STORE", to_string(layout.store));
  set("LOCKSTEP_TOKEN", layout.token);
  variables.erase("LOCKSTEP_TOKEN_FILE");
  if (!layout.log_folder.empty()) set("TORCHELASTIC_ERROR_FILE", error_path(layout, rank));
  if (layout.nodes == 1) {
    set("CLUSTER_SPEC", cluster_json(layout, rank, "workerpool0", "workerpool1"));
    set("TF_CONFIG", cluster_json(layout, rank, "chief", "worker"));
  }
  if (!layout.output.empty()) {
    set_default(variables, "AIP_MODEL_DIR", layout.output + "/model");
    set_default(variables, "AIP_CHECKPOINT_DIR", layout.output + "/checkpoints");
    set_default(variables, "AIP_TENSORBOARD_LOG_DIR", layout.output + "/logs");
  }
  // One thread a worker, as torchrun has it, would leave most of the host idle.
  set_default(variables, "OMP_NUM_THREADS",
              std::to_string(std::max<int64_t>(1, layout.cores / layout.workers_per_node)));
  return variables;
}

Variables server_variables(const RunLayout& layout, const Variables& inherited) {
  Variables variables = inherited;
  for (const char* name : {"LOCKSTEP_TOKEN_FILE", "TORCHELASTIC_USE_AGENT_STORE", "TORCHELASTIC_ERROR_FILE"})
    variables.erase(name);
  variables.erase(kLiveColumnsVariable);
  variables["LOCKSTEP_STORE"] = to_string(layout.store);
  variables["LOCKSTEP_TOKEN"] = layout.token;
  return variables;
}

}  // namespace lockstep
