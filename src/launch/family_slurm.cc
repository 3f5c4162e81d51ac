// srun's tasks. A batch script and an interactive shell have SLURM_PROCID=0 too, with the number of tasks of
// the whole allocation, but are no task of it: only srun gives a step its number.
#include <algorithm>

#include "base/error.h"
#include "launch/families.h"
#include "launch/node_list.h"

namespace lockstep {
namespace {

// Slurm numbers its batch, interactive and other special steps downwards from here.
constexpr int64_t kSpecialSteps = 0xffff'fff0;
constexpr int64_t kMostCores = 1 << 20;

std::string_view first_set(const Variables& variables, std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names)
    if (find_variable(variables, name)) return name;
  return *names.begin();
}

int64_t tasks_on_node(const Variables& variables, int64_t node, int64_t size, int64_t nodes) {
  const std::string_view list = first_set(variables, {"SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"});
  if (const auto text = find_variable(variables, list)) {
    const auto tasks = expand_tasks_per_node(*text, list);
    if (static_cast<size_t>(node) >= tasks.size())
      throw UserError("SLURM_NODEID={} is not one of the {} hosts of {}={}", node, tasks.size(), list,
                      in_quotes(*text));
    return tasks[static_cast<size_t>(node)];
  }
  return find_integer(variables, "SLURM_NTASKS_PER_NODE", 1, size).value_or(nodes == 1 ? size : 1);
}

}  // namespace

std::optional<WorkerPlace> slurm_placement(const Variables& variables) {
  const auto step = find_integer(variables, "SLURM_STEP_ID", 0, 0xffff'ffff);
  if (!step || *step >= kSpecialSteps || !find_variable(variables, "SLURM_PROCID")) return std::nullopt;
  const std::string_view size_name = first_set(variables, {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"});
  const std::string_view nodes_name =
      first_set(variables, {"SLURM_STEP_NUM_NODES", "SLURM_NNODES", "SLURM_JOB_NUM_NODES"});
  const std::string_view list_name =
      first_set(variables, {"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST"});

  WorkerPlace placement;
  placement.family = "Slurm";
  placement.size = need_integer(variables, size_name, 1, kMostWorkers, "SLURM_PROCID");
  placement.rank = need_integer(variables, "SLURM_PROCID", 0, placement.size - 1, size_name);
  placement.said = fmt::format("SLURM_PROCID={} {}={}", placement.rank, size_name, placement.size);

  const auto list = find_variable(variables, list_name);
  const std::vector<std::string> hosts =
      list ? expand_node_list(*list, list_name) : std::vector<std::string>{};
  // An allocation may have more hosts than the step uses.
  const int64_t nodes = std::min(find_integer(variables, nodes_name, 1, static_cast<int64_t>(kMostNodes))
                                     .value_or(hosts.empty() ? 1 : static_cast<int64_t>(hosts.size())),
                                 placement.size);
  const int64_t node = find_integer(variables, "SLURM_NODEID", 0, nodes - 1).value_or(0);
  placement.local_size = tasks_on_node(variables, node, placement.size, nodes);
  if (placement.local_size > placement.size)
    throw UserError("{}, but {} tasks on this host; the SLURM_ variables contradict each other",
                    describe(placement), placement.local_size);
  placement.local_rank = find_integer(variables, "SLURM_LOCALID", 0, placement.local_size - 1).value_or(0);

  placement.cores = find_integer(variables, "SLURM_CPUS_ON_NODE", 1, kMostCores).value_or(0);
  if (const auto name = find_variable(variables, "SLURMD_NODENAME"))
    placement.host = *name;
  else if (static_cast<size_t>(node) < hosts.size())
    placement.host = hosts[static_cast<size_t>(node)];
  const auto job = find_variable(variables, first_set(variables, {"SLURM_JOB_ID", "SLURM_JOBID"}));
  placement.master_port = port_of_job(fmt::format("{}.{}", job.value_or("0"), *step));
  place_master(placement, variables, hosts.empty() ? "" : hosts.front());
  return placement;
}

}  // namespace lockstep
