#include "cli/bench_input.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <iostream>
#include <memory>
#include <thread>

#include "cli/cli.h"
#include "cli/input_figures.h"
#include "cli/job_stream.h"
#include "cli/processor_time.h"
#include "job/files.h"
#include "job/parse.h"
#include "job/resolve.h"

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;

// Steps that take this much longer than reading their records should never wait for them.
constexpr double kSlack = 1.2;

struct BenchInput {
  std::string file;
  std::vector<std::string> overrides;
  double seconds = 2;
  FiguresOptions figures;
  bool json = false;
  std::vector<double> step_ms = {1, 5, 50};
};

double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

struct Measured {
  double records_per_second = 0;
  InputReport report;
};

// Reads batches for a while, with a step after each that keeps no processor busy.
Measured read(const JobSpec& spec, const std::shared_ptr<const Data>& data, int64_t batch,
              double step_seconds, double seconds) {
  JobStream stream(spec, data, batch);
  const Clock::time_point start = Clock::now();
  int64_t batches = 0;
  for (; since(start) < seconds; ++batches) {
    stream.get(batches);
    if (step_seconds > 0) std::this_thread::sleep_for(std::chrono::duration<double>(step_seconds));
  }
  return {static_cast<double>(batches * batch) / since(start), stream.report()};
}

void run_bench_input(const BenchInput& bench) {
  const JobSpec spec = load_job(bench.file, bench.overrides);
  resolve(spec);
  require_files(spec);
  if (bench.json) {
    std::cout << input_figures(spec, bench.figures).dump() << "\n";
    return;
  }
  Clock::time_point start = Clock::now();
  const auto data = std::make_shared<const Data>(open_job_data(spec));
  std::cout << fmt::format("opened {} records in {:.0f} ms\n", data->train->size(), 1e3 * since(start));
  const int64_t batch = spec.train.microbatch;
  const double processor = processor_seconds();
  start = Clock::now();
  const Measured most = read(spec, data, batch, 0, bench.seconds);
  const double busy = processor_seconds() - processor;
  std::cout << fmt::format(
      "as fast as it goes: {:.0f} records/s in batches of {}, {:.0f} MB/s from files, {:.2f} CPU-seconds a "
      "million records, {} readers\n",
      most.records_per_second, batch, static_cast<double>(most.report.stages.bytes) / since(start) / 1e6,
      1e6 * busy / (most.records_per_second * since(start)), most.report.readers);
  for (const double step : bench.step_ms) {
    const auto records =
        std::max<int64_t>(1, static_cast<int64_t>(most.records_per_second * step / 1e3 / kSlack));
    const Measured measured = read(spec, data, records, step / 1e3, bench.seconds);
    std::cout << fmt::format("steps of {} ms with {} records: waited {:.2f} %, {} batches ahead; {}\n", step,
                             records, 100 * measured.report.waited_in_all() / measured.report.seconds,
                             measured.report.ahead, measured.report.sentence());
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
  command->add_option("--seconds", options->seconds, "how long to measure each")->capture_default_str();
  command->add_option("--step-ms", options->step_ms, "lengths of emulated steps")->capture_default_str();
  command->add_flag("--json", options->json, "one JSON line instead, without emulated steps");
  command->add_option("--warm-up", options->figures.warm_up, "seconds before --seconds, for --json")
      ->capture_default_str();
  command->add_flag("--check", options->figures.check,
                    "with --json: also sums over an epoch, and resuming in its middle");
  command->callback([options] {
    options->figures.seconds = options->seconds;
    run_bench_input(*options);
  });
}

}  // namespace lockstep
