// lockstep train JOB: trains what the job file describes; goes on where an earlier start was ended.
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "cli/cli.h"
#include "cli/exit.h"
#include "job/parse.h"
#include "run/train_run.h"

namespace lockstep {
namespace {

struct TrainCommand {
  std::string file;
  std::vector<std::string> overrides;
  bool fresh = false;
};

void run(const TrainCommand& command) {
  JobSpec spec = load_job(command.file, command.overrides);
  for (const std::string& note : spec.notes) std::cerr << "# " << note << "\n";
  TrainRun run(std::move(spec), {.fresh = command.fresh, .out = &std::cerr, .out_descriptor = 2, .join = {}});
  const RunSummary summary = run.run();
  std::cout << fmt::format("{} {}\n", summary.status, summary.weights_sha256);
  // What the guard found was told when it was found.
  if (!summary.error.empty() && summary.status != "diverged")
    std::cerr << "lockstep: " << summary.error << "\n";
  if (summary.exit_code != 0) throw Exit{static_cast<int>(summary.exit_code)};
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
  command->callback([options] { run(*options); });
}

}  // namespace lockstep
