// lockstep check JOB: reads and resolves a job file and prints the job that would run and the memory it
// would take. Touches nothing.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <sstream>

#include "cli/cli.h"
#include "job/files.h"
#include "job/parse.h"
#include "job/print.h"
#include "job/resolve.h"
#include "run/fit.h"
#include "run/job_options.h"

namespace lockstep {
namespace {

struct CheckOptions {
  std::string file;
  std::vector<std::string> overrides;
};

// The columns that the job names; without any, those of the generated transactions.
InputSizes inputs_of(const JobSpec& spec) {
  InputSizes inputs;
  const ColumnsSpec& columns = spec.data.train.columns;
  if (!columns.categorical.empty()) inputs.tables = static_cast<int64_t>(columns.categorical.size());
  if (!columns.numeric.empty()) inputs.dense = static_cast<int64_t>(columns.numeric.size());
  return inputs;
}

JobFacts facts_of(const JobSpec& spec, const Model& model) {
  JobFacts facts;
  facts.parameters = parameter_count(model);
  if (spec.data.train.format == DataFormat::kSynthetic) facts.train_samples = spec.data.train.samples;
  return facts;
}

void print_arithmetic(const JobSpec& spec, const JobFacts& facts, const ResolvedJob& job) {
  std::cout << fmt::format("\n# {} parameters\n", *facts.parameters)
            << fmt::format("# a step: {} samples = {} microbatches of {}, summed in {} leaves of {}\n",
                           spec.train.global_batch, job.microbatches, spec.train.microbatch, job.leaves,
                           job.microbatches / job.leaves);
  if (job.steps && job.warmup_steps)
    std::cout << fmt::format("# the run: {} steps, of which {} warm up\n", *job.steps, *job.warmup_steps);
  std::cout << fmt::format("# peak learning rate: {:.6g}\n", job.peak_lr);
  for (const std::string& note : job.notes) std::cout << "# " << note << "\n";
}

void print_memory(const JobPlan& plan) {
  std::istringstream table(plan.table());
  for (std::string line; std::getline(table, line);) std::cout << "# " << line << "\n";
}

void run(const CheckOptions& options) {
  const JobSpec spec = load_job(options.file, options.overrides);
  resolve(spec);  // refuses what does not hold together before a model is built from it
  require_files(spec);
  const InputSizes inputs = inputs_of(spec);
  const Model model = build_job_model(spec, inputs);
  const JobFacts facts = facts_of(spec, model);
  const ResolvedJob job = resolve(spec, facts);
  for (const std::string& note : spec.notes) std::cout << "# " << note << "\n";
  std::cout << to_yaml(spec);
  print_arithmetic(spec, facts, job);
  const auto backend = make_cpu_backend(job_threads(spec));
  const JobPlan plan = plan_job(spec, job, model, inputs, *backend);
  print_memory(plan);
  require_fit(spec, job, plan, inputs, *backend);
}

}  // namespace

void add_check_command(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("check", "read a job file, and print the job that would run and its memory");
  auto options = std::make_shared<CheckOptions>();
  command->add_option("job", options->file, "the job file")->required();
  command
      ->add_option("--set", options->overrides,
                   "key=value, as in train.lr.base=1e-3 (may be given several times)")
      ->allow_extra_args(false);
  command->callback([options] { run(*options); });
}

}  // namespace lockstep
