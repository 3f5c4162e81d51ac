// lockstep data: make and look at training data. `data synth fraud` writes card-transaction logs as
// shards of one of several formats; the tools that take a job file lie beside this file, one each.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <iostream>
#include <memory>

#include "cli/bench_input.h"
#include "cli/cli.h"
#include "cli/data_convert.h"
#include "cli/data_job.h"
#include "data/source/wrapped_source.h"
#include "data/synthetic/fraud_shards.h"
#include "data/synthetic/fraud_writer.h"

namespace lockstep {
namespace {

struct SynthFraud {
  FraudOptions options;
  double eval_fraction = 0.2;
  std::string out;
  bool overwrite = false;
};

void run_synth_fraud(const SynthFraud& job) {
  const auto start = std::chrono::steady_clock::now();
  const FraudReport report = write_fraud(job.options, job.out, job.overwrite);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const double rows = static_cast<double>(job.options.rows);
  std::cout << fmt::format(
                   "{}: {} training rows and {} held-out rows, {:.2f} % fraud in {} files ({:.1f} MB)\n",
                   job.out, report.train_rows, report.eval_rows,
                   100.0 * static_cast<double>(report.frauds) / rows, report.files.size(),
                   static_cast<double>(report.bytes) / 1e6)
            << fmt::format("{:.2f} s, {:.2f} million rows/s\n", seconds, rows / seconds / 1e6);
}

}  // namespace

void add_data_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("data", "make and look at training data");
  command->require_subcommand(1);
  add_data_convert(*command);
  add_data_index(*command);
  add_data_inspect(*command);
  add_data_at(*command);
  add_data_verify(*command);
  add_data_shuffle_report(*command);
  add_data_transforms(*command);
  add_bench_input_command(*command, "bench");
  CLI::App* synth =
      command->add_subcommand("synth", "write generated data, the same for a seed on every machine");
  synth->require_subcommand(1);
  CLI::App* fraud =
      synth->add_subcommand("fraud", "card-transaction logs with about 1 % fraud, as shards of one format");
  auto job = std::make_shared<SynthFraud>();
  fraud->add_option("--rows", job->options.rows, "training and held-out rows together")
      ->capture_default_str();
  fraud->add_option("--out", job->out, "folder for train-* and eval-* files")->required();
  fraud->add_option("--format", job->options.format, "what files to write")
      ->check(CLI::IsMember(fraud_formats()))
      ->capture_default_str();
  fraud->add_option("--shards", job->options.shards, "training shards")->capture_default_str();
  fraud->add_option("--seed", job->options.seed, "what the rows are a function of")->capture_default_str();
  fraud->add_option("--eval-fraction", job->eval_fraction, "the last part in time, held out")
      ->capture_default_str();
  fraud->add_flag("--overwrite", job->overwrite, "replace shards of an earlier call");
  fraud->callback([job] {
    job->options.eval_rows = held_out(job->options.rows, job->eval_fraction);
    run_synth_fraud(*job);
  });
}

}  // namespace lockstep
