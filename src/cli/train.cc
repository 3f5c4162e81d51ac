// lockstep train JOB: trains what the job file describes; goes on where an earlier start was ended.
//
// With several workers this process starts that many of itself on this host and watches over them, also of
// one that is to be restarted after a crash; each finds its place in the environment, as a worker that
// another launcher started would.
#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <limits>
#include <memory>

#include "base/error.h"
#include "base/printable.h"
#include "base/standard_streams.h"
#include "cli/cli.h"
#include "cli/exit.h"
#include "job/not_yet.h"
#include "job/parse.h"
#include "job/print.h"
#include "job/resolve.h"
#include "job/workers.h"
#include "launch/environment.h"
#include "launch/error_file.h"
#include "launch/launcher.h"
#include "launch/token.h"
#include "prepare/job_options.h"
#include "run/async_coordinator.h"
#include "run/async_worker.h"
#include "run/join_workers.h"
#include "run/resume.h"
#include "run/run_folder.h"
#include "run/settle_codec.h"
#include "run/train_run.h"

namespace lockstep {
namespace {

struct TrainCommand {
  std::string file;
  std::vector<std::string> overrides;
  bool fresh = false;
  std::string from;
  int64_t most_restarts = 0;
  std::string replay;  // the folder of an asynchronous run
  NodeFlags nodes;
};

// A run that was started again by whoever watches over it goes on: it must not be told to begin where it
// began the first time.
TrainCommand without_beginning(TrainCommand command, const Variables& variables) {
  if (find_integer(variables, "TORCHELASTIC_RESTART_COUNT", 0, std::numeric_limits<int64_t>::max())
          .value_or(0) > 0) {
    command.fresh = false;
    command.from.clear();
  }
  return command;
}

void print_result(const RunSummary& summary) {
  std::cout << fmt::format("{} {}\n", summary.status, summary.weights_sha256);
  // What was trained lies in the run's folder, whoever can be told of it.
  flush_standard_output();
}

// Tells whoever started this process of its first error, so that it is told from those of workers who only
// lost this one.
class ErrorReport {
 public:
  explicit ErrorReport(const Variables& variables) : variables_(variables) {}
  void tell(const std::string& message) {
    if (!told_) write_error_file(variables_, message, 1);
    told_ = true;
  }

 private:
  const Variables& variables_;
  bool told_ = false;
};

// An error is told while the run still holds its place among the workers.
RunSummary run_to_end(TrainRun& run, ErrorReport& report) {
  try {
    return run.run();
  } catch (const Error& error) {
    report.tell(error.what());
    throw;
  }
}

// Of the command that starts this process: what its processes are started with.
std::vector<std::string> worker_command(const TrainCommand& command) {
  std::vector<std::string> words = {"/proc/self/exe", "train", command.file};
  for (const std::string& change : command.overrides) {
    words.emplace_back("--set");
    words.push_back(change);
  }
  return words;
}

// Who makes the steps of a job whose workers push at their own pace.
auto async_engine(const JobSpec& spec, const TrainCommand& command) {
  AsyncOptions options;
  options.workers = wanted_workers(spec).value_or(1);
  options.worker_command = worker_command(command);
  options.server_command = {"/proc/self/exe", "serve-params", "--index"};
  options.replay = command.replay;
  return [options](const JobParts& parts, TrainStep& train) -> std::unique_ptr<StepEngine> {
    return std::make_unique<AsyncCoordinator>(parts, train, options);
  };
}

// This process trains, alone or as one of several.
void work(JobSpec spec, const TrainCommand& command, const std::optional<WorkerPlace>& placement,
          ErrorReport& report) {
  RunOptions options{.fresh = command.fresh,
                     .from = command.from,
                     .job = spec,
                     .out = &std::cerr,
                     .out_descriptor = 2,
                     .join = {}};
  options.host = host_share(placement);
  if (trains_async(spec)) options.engine = async_engine(spec, command);
  const bool leads = options.leads = !placement || placement->rank == 0;
  spec.strategy.workers = placement ? placement->size : 1;
  if (placement)
    options.join = [place = *placement](const JobParts& parts) { return join_workers(place, parts); };
  if (leads)
    for (const std::string& note : spec.notes) std::cerr << "# " << printable(note) << "\n";
  TrainRun run(std::move(spec), options);
  const RunSummary summary = run_to_end(run, report);
  if (leads) print_result(summary);
  // What the guard found was told when it was found.
  if (leads && !summary.error.empty() && summary.status != "diverged")
    std::cerr << "lockstep: " << printable_lines(summary.error) << "\n";
  // It ends for a reason of its own (a full disk): the others, who lose it, must not be taken for the first.
  if (summary.status == "failed") report.tell(summary.error);
  if (summary.exit_code != 0) throw Exit{static_cast<int>(summary.exit_code)};
}

// Whether the run is finished, found out before anything is started that would write into its folder.
bool says_finished(const JobSpec& spec, const TrainCommand& command, const Nodes& nodes) {
  if (command.fresh || !command.from.empty() || nodes.count > 1 ||
      !std::filesystem::exists(summary_path(spec.output)))
    return false;
  const HostShare host = expected_share(spec);
  JobParts parts = build_parts(spec, *make_job_backend(spec, host), host);
  read_pretrained(parts, nullptr);
  settle_by_checkpoint(parts);
  const auto finished = finished_run(parts);
  if (!finished) return false;
  require_resumable(parts);  // a finished run is one whose last checkpoint can be read
  std::cerr << describe_finished(spec.output, *finished) << "\n";
  print_result(*finished);
  return true;
}

// This process starts the workers of this host.
void start_workers(const JobSpec& spec, const TrainCommand& command, const Nodes& nodes) {
  resolve(spec);  // one complaint instead of one from each worker
  if (!spec.workerPoolSpecs.empty()) make_job_backend(spec, expected_share(spec));
  if (nodes.rank == 0) require_run_folder(spec);
  if (says_finished(spec, command, nodes)) return;
  LaunchRequest request;
  request.nodes = nodes;
  request.command = worker_command(command);
  if (command.fresh) request.command.emplace_back("--fresh");
  if (!command.from.empty()) request.command.insert(request.command.end(), {"--from", command.from});
  // Between hosts, servers have hosts of their own, where somebody else starts them.
  if (nodes.count == 1 && nodes.workers_per_node > 1) {
    request.servers = spec.strategy.reduce.servers.value_or(0);
    request.server_command = {"/proc/self/exe", "serve-reduce", "--once"};
  }
  request.most_restarts = command.most_restarts;
  request.run_id = spec.name;
  request.output = spec.output;
  request.log_folder = spec.output + "/logs";
  const WorkerSetResult result = launch(request);
  if (result.first_failure)
    std::cerr << "lockstep: " << printable_lines(describe(*result.first_failure)) << "\n";
  if (result.exit_code != 0) throw Exit{result.exit_code};
}

// The job of a run that is repeated, into another folder.
JobSpec load_replay(TrainCommand& command) {
  const std::string kept = command.replay + "/job.yaml";
  if (command.file.empty()) command.file = kept;
  const auto names_output = [](const std::string& change) { return change.starts_with("output="); };
  if (std::none_of(command.overrides.begin(), command.overrides.end(), names_output))
    command.overrides.push_back("output=" + command.replay + "-replay");
  JobSpec spec = load_job(command.file, command.overrides);
  spec.checkpoint.dir.clear();  // which has the other run's
  std::error_code error;
  if (std::filesystem::equivalent(spec.output, command.replay, error))
    throw UserError("--replay {}: the output must be another folder; give --set output=FOLDER",
                    command.replay);
  if (!trains_async(spec))
    throw UserError(
        "--replay {}: the run was synchronous, and has no order of its own to repeat; train its job again: "
        "lockstep train {} --set output=FOLDER",
        command.replay, kept);
  if (!std::filesystem::exists(pushes_path(command.replay)))
    throw UserError("--replay {}: there is no {}, which says what to repeat", command.replay,
                    pushes_path(command.replay));
  return spec;
}

// Starts servers and workers from this process, which coordinates them.
void train_async(const JobSpec& spec, const TrainCommand& command,
                 const std::optional<WorkerPlace>& placement, ErrorReport& report) {
  if ((placement && placement->size > 1) || command.nodes.nnodes.value_or(1) > 1)
    throw UserError(
        "{}: strategy.mode async runs on one host, and starts its workers and servers itself: start "
        "`lockstep "
        "train` once, without a launcher{}",
        spec.where("strategy.mode"), placement ? fmt::format(" ({})", describe(*placement)) : "");
  if (command.most_restarts > 0 && !placement) {
    JobSpec coordinator = spec;
    coordinator.strategy.workers = 1;
    return start_workers(coordinator, command, Nodes{});
  }
  work(spec, command, placement, report);
}

void train(TrainCommand command, const Variables& variables, ErrorReport& report) {
  if (command.file.empty() && command.replay.empty())
    throw UserError("train needs a job file, or --replay with the folder of an asynchronous run");
  const JobSpec spec =
      command.replay.empty() ? load_job(command.file, command.overrides) : load_replay(command);
  refuse_not_yet(spec);  // before a launcher's word on the number of workers replaces the job's
  const std::optional<WorkerPlace> placement = placement_from(variables);
  if (const auto coordinator = find_variable(variables, kCoordinatorVariable);
      coordinator && trains_async(spec))
    return run_async_worker(spec, placement.value_or(WorkerPlace{}),
                            parse_host_port(*coordinator, kCoordinatorVariable), token_from(variables));
  if (trains_async(spec)) return train_async(spec, command, placement, report);
  if (placement) {
    const int64_t each = workers_per_process(*placement, spec.strategy.workers.value_or(placement->size));
    if (each > 1) return start_workers(spec, command, nodes_from(*placement, each));
    if (command.most_restarts > 0)
      throw UserError(
          "--max-restarts is for workers that this program starts, and {} has started this one; let "
          "it start them again",
          placement->family);
    return work(spec, command, placement, report);
  }
  const Nodes nodes =
      nodes_from(with_environment(command.nodes, variables), wanted_workers(spec).value_or(0));
  if (nodes.count * nodes.workers_per_node > 1 || command.most_restarts > 0)
    return start_workers(spec, command, nodes);
  work(spec, command, std::nullopt, report);
}

void run_train(const TrainCommand& command) {
  const Variables variables = process_variables();
  ErrorReport report(variables);
  try {
    train(without_beginning(command, variables), variables, report);
  } catch (const Error& error) {
    report.tell(error.what());
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
  command->add_option("job", options->file, "the job file; may be left out with --replay");
  command
      ->add_option("--set", options->overrides,
                   "key=value, as in train.lr.base=1e-3 (may be given several times)")
      ->allow_extra_args(false);
  CLI::Option* fresh =
      command->add_flag("--fresh", options->fresh, "start over: remove the checkpoints in the output folder");
  command
      ->add_option(
          "--from", options->from,
          "go on from this checkpoint, as in checkpoint-200, and remove later ones; by default from the "
          "newest")
      ->excludes(fresh);
  command
      ->add_option(
          "--replay", options->replay,
          "repeat the asynchronous run in this folder bit by bit, into another output (by default its "
          "name with -replay), on any number of workers")
      ->excludes("--from");
  command
      ->add_option("--max-restarts", options->most_restarts,
                   "start the workers of this host again after a crash, at most so often")
      ->check(CLI::Range(int64_t{0}, int64_t{1000000}))
      ->group("Workers");
  add_node_flags(*command, options->nodes);
  command->callback([options] { run_train(*options); });
}

}  // namespace lockstep
