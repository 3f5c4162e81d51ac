// lockstep train JOB: trains what the job file describes; goes on where an earlier start was ended.
//
// With several workers this process starts that many of itself on this host and watches over them; each finds
// its place in the environment, as a worker that another launcher started would.
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "base/error.h"
#include "cli/cli.h"
#include "cli/exit.h"
#include "job/not_yet.h"
#include "job/parse.h"
#include "job/resolve.h"
#include "job/workers.h"
#include "launch/environment.h"
#include "launch/error_file.h"
#include "launch/launcher.h"
#include "prepare/job_options.h"
#include "run/join_workers.h"
#include "run/train_run.h"

namespace lockstep {
namespace {

struct TrainCommand {
  std::string file;
  std::vector<std::string> overrides;
  bool fresh = false;
  NodeFlags nodes;
};

// This process trains, alone or as one of several.
void work(JobSpec spec, const TrainCommand& command, const std::optional<WorkerPlace>& placement) {
  RunOptions options{.fresh = command.fresh, .out = &std::cerr, .out_descriptor = 2, .join = {}};
  options.host = host_share(placement);
  const bool leads = options.leads = !placement || placement->rank == 0;
  spec.strategy.workers = placement ? placement->size : 1;
  if (placement)
    options.join = [place = *placement](const JobParts& parts) { return join_workers(place, parts); };
  if (leads)
    for (const std::string& note : spec.notes) std::cerr << "# " << note << "\n";
  TrainRun run(std::move(spec), options);
  const RunSummary summary = run.run();
  if (leads) std::cout << fmt::format("{} {}\n", summary.status, summary.weights_sha256);
  // What the guard found was told when it was found.
  if (leads && !summary.error.empty() && summary.status != "diverged")
    std::cerr << "lockstep: " << summary.error << "\n";
  // It ends for a reason of its own (a full disk): the others, who lose it, must not be taken for the first.
  if (summary.status == "failed") write_error_file(process_variables(), summary.error, 1);
  if (summary.exit_code != 0) throw Exit{static_cast<int>(summary.exit_code)};
}

// This process starts the workers of this host.
void start_workers(const JobSpec& spec, const TrainCommand& command, const Nodes& nodes) {
  resolve(spec);  // one complaint instead of one from each worker
  LaunchRequest request;
  request.nodes = nodes;
  request.command = {"/proc/self/exe", "train", command.file};
  for (const std::string& change : command.overrides) {
    request.command.emplace_back("--set");
    request.command.push_back(change);
  }
  if (command.fresh) request.command.emplace_back("--fresh");
  request.run_id = spec.name;
  request.output = spec.output;
  request.log_folder = spec.output + "/logs";
  const WorkerSetResult result = launch(request);
  if (result.first_failure) std::cerr << "lockstep: " << describe(*result.first_failure) << "\n";
  if (result.exit_code != 0) throw Exit{result.exit_code};
}

void train(const TrainCommand& command, const Variables& variables) {
  const JobSpec spec = load_job(command.file, command.overrides);
  refuse_not_yet(spec);  // before a launcher's word on the number of workers replaces the job's
  const std::optional<WorkerPlace> placement = placement_from(variables);
  if (placement) {
    const int64_t each = workers_per_process(*placement, spec.strategy.workers.value_or(placement->size));
    if (each > 1) return start_workers(spec, command, nodes_from(*placement, each));
    return work(spec, command, placement);
  }
  const Nodes nodes =
      nodes_from(with_environment(command.nodes, variables), wanted_workers(spec).value_or(0));
  if (nodes.count * nodes.workers_per_node > 1) return start_workers(spec, command, nodes);
  work(spec, command, std::nullopt);
}

void run(const TrainCommand& command) {
  const Variables variables = process_variables();
  try {
    train(command, variables);
  } catch (const Error& error) {
    // For whoever started this process, and tells the first error of several workers from the others.
    write_error_file(variables, error.what(), 1);
    throw;
  }
}

void add_node_flags(CLI::App& command, NodeFlags& flags) {
  const std::string group = "Workers";
  command.add_option("--nnodes", flags.nnodes, "hosts")->group(group);
  command.add_option("--node-rank", flags.node_rank, "which of them this is, from 0")->group(group);
  command.add_option("--nproc-per-node", flags.nproc_per_node, "workers on each")->group(group);
  command.add_option("--master-addr", flags.master_addr, "the first host")->group(group);
  command.add_option("--master-port", flags.master_port, "where it listens")->group(group);
}

}  // namespace

void add_train_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("train", "train what a job file describes");
  auto options = std::make_shared<TrainCommand>();
  command->add_option("job", options->file, "the job file")->required();
  command
      ->add_option("--set", options->overrides,
                   "key=value, as in train.lr.base=1e-3 (may be given several times)")
      ->allow_extra_args(false);
  command->add_flag("--fresh", options->fresh, "start over: remove the checkpoints in the output folder");
  add_node_flags(*command, options->nodes);
  command->callback([options] { run(*options); });
}

}  // namespace lockstep
