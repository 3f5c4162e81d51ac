#include "launch/launcher.h"

#include <algorithm>
#include <memory>

#include "base/cores.h"
#include "base/error.h"
#include "launch/console.h"
#include "launch/families.h"
#include "launch/rendezvous.h"
#include "launch/store_server.h"
#include "launch/token.h"

namespace lockstep {
namespace {

void check_range(const std::optional<int64_t>& value, std::string_view flag, int64_t least, int64_t most) {
  if (value && (*value < least || *value > most))
    throw UserError("{} {} is not a number from {} to {}", flag, *value, least, most);
}

}  // namespace

NodeFlags with_environment(NodeFlags flags, const Variables& variables) {
  const auto fill = [&](std::optional<int64_t>& flag, std::string_view name, int64_t least, int64_t most) {
    if (!flag) flag = find_integer(variables, name, least, most);
  };
  fill(flags.nnodes, "PET_NNODES", 1, kMostWorkers);
  fill(flags.node_rank, "PET_NODE_RANK", 0, kMostWorkers - 1);
  // Kubeflow writes auto, cpu or gpu when it leaves the number to the program.
  const auto per_node = find_variable(variables, "PET_NPROC_PER_NODE");
  if (per_node && per_node != "auto" && per_node != "cpu" && per_node != "gpu")
    fill(flags.nproc_per_node, "PET_NPROC_PER_NODE", 1, kMostWorkers);
  fill(flags.master_port, "PET_MASTER_PORT", 1, 65535);
  if (const auto address = find_variable(variables, "PET_MASTER_ADDR"); address && !flags.master_addr)
    flags.master_addr = std::string(*address);
  return flags;
}

Nodes nodes_from(const NodeFlags& flags, int64_t workers) {
  check_range(flags.nnodes, "--nnodes", 1, kMostWorkers);
  check_range(flags.nproc_per_node, "--nproc-per-node", 1, kMostWorkers);
  check_range(flags.master_port, "--master-port", 1, 65535);
  Nodes nodes;
  nodes.count = flags.nnodes.value_or(1);
  check_range(flags.node_rank, "--node-rank", 0, nodes.count - 1);
  nodes.rank = flags.node_rank.value_or(0);
  if (nodes.count > 1 && (!flags.node_rank || !flags.master_addr))
    throw UserError(
        "--nnodes {} needs {}; give every host its own --node-rank, and all the --master-addr of host 0",
        nodes.count, !flags.node_rank ? "--node-rank" : "--master-addr");
  if (flags.nproc_per_node)
    nodes.workers_per_node = *flags.nproc_per_node;
  else if (workers > 0 && workers % nodes.count != 0)
    throw UserError("strategy.workers {} is not a multiple of --nnodes {}", workers, nodes.count);
  else
    nodes.workers_per_node = std::max<int64_t>(1, workers / nodes.count);
  if (workers > 0 && nodes.workers_per_node * nodes.count != workers)
    throw UserError(
        "strategy.workers is {}, but --nnodes {} times --nproc-per-node {} is {}; make them equal", workers,
        nodes.count, nodes.workers_per_node, nodes.workers_per_node * nodes.count);
  nodes.master.host = flags.master_addr.value_or("127.0.0.1");
  nodes.master.port = flags.master_port.value_or(nodes.count > 1 ? kDefaultMasterPort : 0);
  return nodes;
}

Nodes nodes_from(const WorkerPlace& placement, int64_t workers_per_process) {
  return {
      placement.size, placement.rank, workers_per_process, {placement.master_addr, placement.master_port}};
}

WorkerSetResult launch(const LaunchRequest& request) {
  const Nodes& nodes = request.nodes;
  std::string token = token_from(request.inherited);
  if (token.empty()) {
    if (nodes.count > 1)
      throw UserError(
          "workers on several hosts need a secret in common: set LOCKSTEP_TOKEN to the same value on all of "
          "them, for "
          "instance from: openssl rand -hex 16");
    token = random_token();
  }
  if (nodes.count > 1 && request.most_restarts > 0)
    throw UserError(
        "--max-restarts starts the workers of one host again, and this run has {} hosts; let what starts the "
        "hosts do it (torchrun --max-restarts, Slurm's --requeue), or remove it",
        nodes.count);
  std::unique_ptr<StoreServer> store;
  WorkerSetOptions options;
  options.command = request.command;
  options.server_command = request.server_command;
  options.servers = request.servers;
  options.layout = {.run_id = request.run_id,
                    .nodes = nodes.count,
                    .node_rank = nodes.rank,
                    .workers_per_node = nodes.workers_per_node,
                    .master = nodes.master,
                    .store = nodes.master,
                    .token = token,
                    .output = request.output,
                    .log_folder = request.log_folder,
                    .most_restarts = request.most_restarts,
                    .cores = available_cores().usable,
                    .live_columns = Console(request.err).columns()};
  // Workers that are started again must find nothing of those before them in the store.
  options.prepare = [&](RunLayout& layout) {
    if (nodes.rank != 0) return;
    store.reset();
    StoreOptions served;
    served.listen = listen_address(nodes.master, nodes.count == 1, request.inherited);
    served.token = token;
    store = std::make_unique<StoreServer>(served);
    layout.master.port = store->address().port;
    layout.store = nodes.count > 1 ? layout.master : HostPort{"127.0.0.1", layout.master.port};
  };
  options.inherited = request.inherited;
  options.out = request.out;
  options.err = request.err;
  return run_workers(options);
}

}  // namespace lockstep
