// lockstep predict RUN --data FILES --out FILE: what a trained model answers about every record of some
// files.
#include "use/predict.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>

#include "base/error.h"
#include "cli/cli.h"
#include "cli/exit.h"

namespace lockstep {
namespace {

struct PredictCommand {
  std::string run;
  std::vector<std::string> overrides;
  std::string id;
  bool likeliest = false;
  bool quiet = false;
  PredictOptions options;
};

void run_predict(PredictCommand command) {
  PredictOptions& options = command.options;
  if (!command.id.empty()) options.columns = {command.id};
  options.each_class = !command.likeliest;
  const TrainedRun trained = open_trained_run(command.run, command.overrides);
  const auto say = [&](const std::string& text) {
    if (!command.quiet) std::cerr << text << "\n";
  };
  say(fmt::format("model      {} (step {})", trained.path, trained.step()));
  if (trained.best_step)
    say(fmt::format("           the best evaluation of this run was at step {}; to use that: {}/best",
                    *trained.best_step, command.run));
  if (!trained.spec.data.filter.empty())
    say(fmt::format(
        "           every record is predicted, also those that data.filter kept from training: {}",
        trained.spec.data.filter));
  bool began = false;
  options.began = [&] { began = true; };
  PredictReport report;
  try {
    report = predict(trained, options);
  } catch (const UserError& error) {
    if (!began) throw;
    std::cerr << "lockstep: " << error.what() << "\n";
    throw Exit{1};
  }
  for (const std::string& column : report.left_out) say("left out   " + column);
  say(
      fmt::format("predicted  {} records of {} files as {} in {:.2f} s ({:.0f} records/s on {} threads), "
                  "{:.2f} s to open them",
                  report.records, report.format, report.out_format, report.seconds,
                  static_cast<double>(report.records) / std::max(report.seconds, 1e-9), report.lanes,
                  report.open_seconds));
  if (options.out != "-") say(fmt::format("output     {}, {} bytes", options.out, report.bytes));
}

}  // namespace

void add_predict_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("predict", "write what a trained model answers about records");
  auto all = std::make_shared<PredictCommand>();
  PredictOptions& options = all->options;
  command->add_option("run", all->run, "a run's folder (its newest checkpoint is used), or a checkpoint")
      ->required();
  command->add_option("--data", options.files, "files to predict: paths, folders or patterns with * and ?")
      ->required();
  command
      ->add_option("--out", options.out,
                   "the file to write, by whose ending the format is chosen; - is standard output")
      ->required();
  command->add_option("--out-format", options.out_format, "csv, jsonl, parquet, tfrecord or block");
  command->add_option("--format", options.format,
                      "of the data; by default what their names say, or that of the training data");
  auto* columns =
      command
          ->add_option("--columns", options.columns,
                       "columns of the records to write beside the answer, as in id,amount; by default all")
          ->delimiter(',');
  command->add_option("--id", all->id, "the one column of the records to write")->excludes(columns);
  command
      ->add_option("--threshold", options.threshold, "adds a column `decision`: 1 from this probability on")
      ->check(CLI::Range(0.0, 1.0));
  command->add_flag("--likeliest", all->likeliest, "of several classes write only the likeliest");
  command->add_option("--threads", options.threads, "by default one per processor; changes no digit")
      ->check(CLI::Range(int64_t{1}, int64_t{4096}));
  command->add_option("--batch", options.batch, "records to compute at once; changes no digit")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 20));
  command
      ->add_option("--set", all->overrides,
                   "key=value for the job kept with the run, as in data.errors.policy=skip (may be given "
                   "several times)")
      ->allow_extra_args(false);
  command->add_flag("--quiet", all->quiet, "say nothing but errors");
  command->callback([all] { run_predict(*all); });
}

}  // namespace lockstep
