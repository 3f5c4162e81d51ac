// lockstep check JOB: reads and resolves a job file and prints the job that would run and the memory it
// would take. Touches nothing: indexes that are there are used, others are built and forgotten.
#include <fmt/format.h>
#include <malloc.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <sstream>

#include "cli/cli.h"
#include "job/numbers.h"
#include "job/parse.h"
#include "job/print.h"
#include "prepare/column_lines.h"
#include "prepare/compression_advice.h"
#include "prepare/fit.h"
#include "prepare/job_evaluation.h"
#include "prepare/job_options.h"
#include "prepare/job_parts.h"
#include "prepare/layouts.h"
#include "prepare/server_advice.h"
#include "prepare/trained_params.h"
#include "prepare/warnings.h"
#include "run/resume.h"
#include "run/settle_codec.h"

namespace lockstep {
namespace {

struct CheckOptions {
  std::string file;
  std::vector<std::string> overrides;
  int64_t devices = 0;  // to plan layouts over; 0: none
  std::string device_memory;
};

void print_arithmetic(const JobParts& parts) {
  const JobSpec& spec = parts.spec;
  const ResolvedJob& job = parts.resolved;
  std::cout << "\n";
  if (!parts.data.label_decision.empty()) std::cout << "# label " << parts.data.label_decision << "\n";
  std::cout << fmt::format("# {} parameters\n", parameter_count(parts.model))
            << fmt::format("# a step: {} samples = {} microbatches of {}, summed in {} leaves of {}\n",
                           spec.train.global_batch, job.microbatches, spec.train.microbatch, job.leaves,
                           job.microbatches / job.leaves)
            << fmt::format("# the run: {} steps over {} records, of which {} steps warm up\n", parts.steps(),
                           parts.data.train->size(), parts.schedule.warmup_steps())
            << fmt::format("# peak learning rate: {:.6g}\n", job.peak_lr)
            << fmt::format("# identity {}\n", parts.identity.sha256());
  if (const MeshShape mesh = job_mesh(spec); mesh.splits_model())
    std::cout << fmt::format("# {} workers: {}\n", mesh.ranks(), mesh.text());
  if (const std::string trained = trained_text(parts.model); !trained.empty())
    std::cout << fmt::format("# {}\n", trained);
  if (parts.pretrained) std::cout << fmt::format("# weights: {}\n", parts.pretrained->text());
  if (parts.initial) std::cout << fmt::format("# starts from {}\n", parts.initial->text());
  for (const std::string& note : job.notes) std::cout << "# " << note << "\n";
  if (parts.data.report) {
    std::cout << "# columns: " << column_line(*parts.data.report) << "\n";
    for (const std::string& note : column_notes(*parts.data.report)) std::cout << "# " << note << "\n";
  }
  for (const std::string& line : server_advice(spec)) std::cout << "# " << line << "\n";
  for (const std::string& warning : job_warnings(parts)) std::cout << "# warning: " << warning << "\n";
}

void print_start(const JobParts& parts, const std::optional<int64_t>& resumes) {
  if (const auto finished = finished_run(parts))
    std::cout << "# " << describe_finished(parts.spec.output, *finished) << "\n";
  else if (resumes)
    std::cout << fmt::format("# goes on after step {}, from {}\n", *resumes, checkpoint_folder(parts.spec));
}

void print_memory(const JobPlan& plan) {
  std::istringstream table(plan.table());
  for (std::string line; std::getline(table, line);) std::cout << "# " << line << "\n";
}

void print_layouts(const JobParts& parts, const CheckOptions& options) {
  const std::optional<int64_t> bytes = read_bytes(options.device_memory);
  if (!bytes || *bytes <= 0)
    throw UserError("--device-memory '{}' is no size; write as in 40GiB", options.device_memory);
#ifdef __GLIBC__
  // Graphs are copied by the thousand, and every large one that goes would empty the fast bins.
  mallopt(M_MXFAST, 0);
#endif
  const DeviceSet devices{options.devices, *bytes};
  std::cout << layout_table(plan_layouts(parts.spec, parts.inputs, devices), devices);
}

void run_check(const CheckOptions& options) {
  JobSpec spec = load_job(options.file, options.overrides);
  const HostShare host = expected_share(spec);
  const auto backend = make_job_backend(spec, host);
  // The data is read as training would: how many records and columns it has decides steps and sizes. What
  // training would refuse is refused here. Nothing is written beside the data.
  JobParts parts = build_parts(std::move(spec), *backend, host, true, Keeping::kNo);
  read_pretrained(parts, nullptr);
  settle_by_checkpoint(parts);
  require_evaluation(parts);
  const std::optional<int64_t> resumes = require_resumable(parts);
  for (const std::string& note : parts.spec.notes) std::cout << "# " << note << "\n";
  for (const std::string& note : parts.data.notes) std::cout << "# " << note << "\n";
  std::cout << to_yaml(parts.spec);
  print_arithmetic(parts);
  // What this machine has does not matter then.
  if (options.devices > 0) return print_layouts(parts, options);
  print_start(parts, resumes);
  const JobPlan plan =
      plan_job(parts.spec, parts.resolved, parts.model, parts.inputs, *backend, expected_host(parts.spec));
  for (const std::string& line : compression_advice(parts.options, plan.train.layout))
    std::cout << "# " << line << "\n";
  print_memory(plan);
  require_fit(parts.spec, parts.resolved, plan, parts.inputs, *backend, host);
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
  auto* const devices =
      command
          ->add_option("--devices", options->devices,
                       "print the ways to split the job over this many devices, and which of them fit")
          ->check(CLI::Range(int64_t{1}, int64_t{1} << 16));
  auto* const memory =
      command->add_option("--device-memory", options->device_memory, "that each of them has, as 40GiB");
  devices->needs(memory);
  memory->needs(devices);
  command->callback([options] { run_check(*options); });
}

}  // namespace lockstep
