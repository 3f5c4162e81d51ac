#include "cli/bench_input.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <iostream>
#include <memory>

#include "cli/cli.h"
#include "cli/input_figures.h"
#include "cli/input_stall.h"
#include "cli/processor_time.h"
#include "job/files.h"
#include "job/parse.h"
#include "job/resolve.h"
#include "prepare/job_data.h"

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;

struct BenchInput {
  std::string file;
  std::vector<std::string> overrides;
  double seconds = 2;
  FiguresOptions figures;
  bool json = false;
  std::vector<double> step_ms = {1, 5, 50};
  bool stalls = false;
  int repeats = 1;
};

double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

double mib(int64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

void run_bench_input(const BenchInput& bench) {
  const JobSpec spec = load_job(bench.file, bench.overrides);
  resolve(spec);
  require_files(spec);
  if (bench.json) {
    std::cout << input_figures(spec, bench.figures).dump() << "\n";
    return;
  }
  if (bench.stalls) {
    std::cout << stall_figures(spec, bench.step_ms, bench.seconds, bench.repeats).dump() << "\n";
    return;
  }
  Clock::time_point start = Clock::now();
  const int64_t records = open_job_data(spec, expected_share(spec)).train->size();
  std::cout << fmt::format("opened {} records in {:.0f} ms\n", records, 1e3 * since(start));
  const int64_t batch = spec.train.microbatch;
  const double processor = processor_seconds();
  start = Clock::now();
  const MeasuredReading most = measure_reading(spec, batch, 0, bench.seconds);
  const double busy = processor_seconds() - processor;
  std::cout << fmt::format(
      "as fast as it goes: {:.0f} records/s in batches of {}, {:.0f} MB/s from files, {:.2f} CPU-seconds a "
      "million records, {} readers\n",
      most.records_per_second, batch,
      static_cast<double>(most.report.stages.bytes) / most.report.seconds / 1e6,
      1e6 * busy / (most.records_per_second * since(start)), most.report.readers);
  for (const double step : bench.step_ms) {
    const MeasuredStall stall =
        measure_stall(spec, most.records_per_second, step, bench.seconds, bench.repeats);
    const InputReport& report = stall.worst().steps.report;
    std::cout << fmt::format(
        "steps of {} ms with {} records: waited {:.2f} %, {} batches ahead, {:.1f} of {:.1f} MiB; {}\n", step,
        stall.worst().steps.batch, 100 * stall.waited(), report.ahead, mib(report.peak_bytes),
        mib(report.budget), stall.sentence(most.records_per_second));
  }
}

}  // namespace

void add_bench_input_command(CLI::App& parent, const std::string& name) {
  CLI::App* command = parent.add_subcommand(
      name, "how fast a job's records can be read, and how long steps of given lengths wait for them");
  auto options = std::make_shared<BenchInput>();
  command->add_option("job", options->file, "job file")->required();
  command
      ->add_option("--set", options->overrides,
                   "key=value, as in data.memory=64MiB (may be given several times)")
      ->allow_extra_args(false);
  command->add_option("--seconds", options->seconds, "how long to measure each")
      ->check(CLI::Range(0.01, 86400.0))
      ->capture_default_str();
  command->add_option("--step-ms", options->step_ms, "lengths of emulated steps")
      ->check(CLI::Range(0.01, 3.6e6))
      ->capture_default_str();
  CLI::Option* json =
      command->add_flag("--json", options->json, "one JSON line instead, without emulated steps");
  command->add_option("--warm-up", options->figures.warm_up, "seconds before --seconds, for --json")
      ->check(CLI::Range(0.0, 86400.0))
      ->capture_default_str();
  command
      ->add_flag("--check", options->figures.check,
                 "with --json: also sums over an epoch, and resuming in its middle")
      ->needs(json);
  command
      ->add_option("--repeats", options->repeats,
                   "how often emulated steps of a length are measured; the worst is shown")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->add_flag("--stalls", options->stalls, "one JSON line about the emulated steps instead")
      ->excludes(json);
  command->callback([options] {
    options->figures.seconds = options->seconds;
    run_bench_input(*options);
  });
}

}  // namespace lockstep
