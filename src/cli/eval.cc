// lockstep eval RUN --data FILES: the metrics of a trained model on other records, with the tables and curves
// behind them.
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "base/error.h"
#include "base/file.h"
#include "cli/cli.h"
#include "observe/plot.h"
#include "observe/terminal.h"
#include "use/evaluate_run.h"

namespace lockstep {
namespace {

struct EvalCommand {
  std::string run;
  std::vector<std::string> overrides;
  std::string json;
  bool ascii = false;
  EvaluateOptions options;
};

void run_eval(const EvalCommand& command) {
  const TrainedRun trained = open_trained_run(command.run, command.overrides);
  const RunEvaluation evaluation = evaluate_run(trained, command.options);
  if (command.json == "-") {
    std::cout << to_json(evaluation);
    return;
  }
  if (!command.json.empty()) write_file(command.json, to_json(evaluation));
  EvaluationText text;
  text.width = terminal_width(1);
  text.unicode = !command.ascii && environment_is_utf8();
  std::cout << to_text(evaluation, text);
  if (trained.best_step)
    std::cerr << fmt::format("the best evaluation of this run was at step {}; to judge that: {}/best\n",
                             *trained.best_step, command.run);
}

}  // namespace

void add_eval_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("eval", "judge a trained model on other records");
  auto all = std::make_shared<EvalCommand>();
  command->add_option("run", all->run, "a run's folder (its newest checkpoint is used), or a checkpoint")
      ->required();
  command->add_option(
      "--data", all->options.files,
      "files with labels: paths, folders or patterns with * and ?; by default what the run held out");
  command->add_option("--format", all->options.format,
                      "of the data; by default what their names say, or that of the training data");
  command->add_option("--json", all->json, "write everything to this file as JSON; - prints that instead");
  command->add_option("--threads", all->options.threads, "by default one per processor; changes no digit")
      ->check(CLI::Range(int64_t{1}, int64_t{4096}));
  command
      ->add_option("--set", all->overrides,
                   "key=value for the job kept with the run (may be given several times)")
      ->allow_extra_args(false);
  command->add_flag("--ascii", all->ascii, "plot with plain characters");
  command->callback([all] { run_eval(*all); });
}

}  // namespace lockstep
