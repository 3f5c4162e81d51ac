#include "cli/bench_step.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "backend/cpu/library_products.h"
#include "base/error.h"
#include "cli/model_options.h"
#include "graph/op_def.h"
#include "graph/text.h"
#include "model/stored_params.h"
#include "train/step/synthetic.h"
#include "train/step/train_step.h"

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;

struct BenchOptions {
  ModelOptions model;
  DeviceOptions device{.kind = DeviceKind::kCpu, .threads = 2};
  int64_t steps = 10;
  int64_t warmup = 2;
  std::string recompute = "none";
  std::vector<std::string> disabled;
  std::string precision = "fp32";
  bool narrow_moments = false;
  bool json = false;
  bool profile = false;
  bool floor = false;
};

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

// A line of /proc/self/status, in bytes. VmHWM is the most that was ever resident, with the pages of programs
// and libraries, and unlike the rusage's maximum without what the parent had when it started this program.
// RssAnon is what is resident now without these pages; its difference over a run is what the run uses.
int64_t status_bytes(const std::string& line) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    int64_t kilobytes = 0;
    if (word == line + ":" && status >> kilobytes) return kilobytes * 1024;
  }
  return 0;
}

// The products of the step as the library alone runs them: one call each, and how often the step has it.
nlohmann::json as_json(const std::vector<cpu::LibraryProduct>& products) {
  nlohmann::json list = nlohmann::json::array();
  for (const cpu::LibraryProduct& product : products) {
    nlohmann::json sizes;
    for (const auto& [name, value] : product.sizes) sizes[name] = value;
    list.push_back({{"op", product.op},
                    {"sizes", sizes},
                    {"count", product.count},
                    {"ms", product.milliseconds},
                    {"call", product.call}});
  }
  return list;
}

void print_profile(const Executable& executable, double total_ms) {
  struct Row {
    int64_t nanoseconds = 0, runs = 0;
    double flops = 0, bytes = 0;
  };
  std::map<std::string, Row> rows;
  for (const ProfileEntry& entry : executable.profile()) {
    Row& row = rows[entry.kernel];
    row.nanoseconds += entry.nanoseconds;
    row.runs += entry.runs;
    row.flops += entry.flops * static_cast<double>(entry.runs);
    row.bytes += entry.bytes * static_cast<double>(entry.runs);
  }
  std::vector<std::pair<std::string, Row>> sorted(rows.begin(), rows.end());
  std::sort(sorted.begin(), sorted.end(),
            [](const auto& a, const auto& b) { return a.second.nanoseconds > b.second.nanoseconds; });
  std::cout << fmt::format("{:<28}{:>8}{:>12}{:>8}{:>10}{:>10}\n", executable.graph().name(), "runs", "ms",
                           "%", "GFLOP/s", "GB/s");
  for (const auto& [kernel, row] : sorted) {
    const auto ns = static_cast<double>(std::max<int64_t>(row.nanoseconds, 1));
    std::cout << fmt::format("{:<28}{:>8}{:>12.3f}{:>8.1f}{:>10.1f}{:>10.1f}\n", kernel, row.runs, ns / 1e6,
                             ns / 1e4 / total_ms, row.flops / ns, row.bytes / ns);
  }
}

// The longest single entries, to see which node of a kernel is slow.
void print_slowest(const Executable& executable) {
  std::vector<ProfileEntry> entries = executable.profile();
  std::sort(entries.begin(), entries.end(),
            [](const auto& a, const auto& b) { return a.nanoseconds > b.nanoseconds; });
  for (size_t i = 0; i < std::min<size_t>(entries.size(), 12); ++i) {
    const ProfileEntry& entry = entries[i];
    const auto ns =
        static_cast<double>(entry.nanoseconds) / static_cast<double>(std::max<int64_t>(entry.runs, 1));
    std::cout << fmt::format("  {:<36}{:<26}{:>10.3f} ms{:>10.1f} GFLOP/s{:>8.1f} GB/s\n", entry.name,
                             entry.kernel, ns / 1e6, entry.flops / ns, entry.bytes / ns);
  }
}

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void run_bench_step(const BenchOptions& options) {
  if (options.narrow_moments && options.precision != "bf16_pure")
    throw UserError("--moments bf16 goes with --precision bf16_pure");
  DeviceOptions device = options.device;
  device.tf32 = options.precision == "tf32";
  const auto backend = make_backend(device);
  if (device.tf32 && !backend->has_tf32()) throw UserError("--precision tf32 needs --device cuda");
  const int64_t libraries = status_bytes("VmHWM");
  const Model built = build_model(options.model);
  const Model model = options.precision == "bf16_pure" ? stored_in(DType::kBF16, built) : built;
  const int64_t resident_before = status_bytes("RssAnon");
  TrainOptions train_options;
  train_options.passes.recompute = parse_recompute(options.recompute);
  train_options.passes.disabled = options.disabled;
  if (options.precision.starts_with("bf16")) train_options.passes.compute = DType::kBF16;
  if (options.narrow_moments) train_options.optimizer.moments = DType::kBF16;
  const auto start = Clock::now();
  TrainStep train(model, *backend, train_options);
  const double ready_ms = milliseconds_since(start);

  std::vector<double> times, updates;
  double first_step_ms = 0;
  StepResult first;
  StepResult last;
  for (int64_t step = 1; step <= options.warmup + options.steps; ++step) {
    set_synthetic_inputs(train, model, 1, step);
    const bool measured = step > options.warmup;
    if (options.profile && measured) {
      train.backward().set_profiling(true);
      train.update().set_profiling(true);
    }
    // A run copies inputs while the step before computes; here they are on the device before the clock
    // starts.
    backend->stream(StreamKind::kCopy).synchronize();
    const auto begin = Clock::now();
    last = train.accumulate();
    const auto accumulated = Clock::now();
    train.apply(1e-4);
    if (measured) {
      times.push_back(milliseconds_since(begin));
      updates.push_back(milliseconds_since(accumulated));
    }
    if (step == 1) {
      first = last;
      first_step_ms = milliseconds_since(start);
    }
  }
  // Updates of table rows that were put off belong to the steps: each step carries its share.
  const auto deferred_start = Clock::now();
  train.catch_up_all();
  const double deferred_ms =
      milliseconds_since(deferred_start) / static_cast<double>(options.warmup + options.steps);
  const double median = median_of(times) + deferred_ms;
  const int64_t used = status_bytes("RssAnon") - resident_before;
  const int64_t peak = status_bytes("VmHWM");

  const MemoryReport& memory = train.backward().plan().memory;
  nlohmann::json report = {{"model", options.model.model},
                           {"device", backend->name()},
                           {"precision", options.precision},
                           {"moments", options.narrow_moments ? "bf16" : "fp32"},
                           {"threads", options.device.threads},
                           {"architecture", backend->architecture()},
                           {"parameters", train.param_count()},
                           {"step_ms", median},
                           {"step_ms_all", times},
                           {"update_ms", median_of(updates)},
                           {"deferred_ms", deferred_ms},
                           {"compile_ms", train.compile_milliseconds()},
                           {"ready_ms", ready_ms},
                           {"first_step_ms", first_step_ms},
                           {"peak_rss_bytes", peak},
                           {"library_rss_bytes", libraries},
                           {"used_bytes", used},
                           {"device_peak_bytes", backend->peak_bytes()},
                           {"planned_peak_bytes", train.planned_bytes()},
                           {"packed_bytes", memory.arena_peak + memory.region_bytes},
                           {"packed_lower_bound_bytes", memory.packed_lower_bound},
                           {"loss_first", first.loss},
                           {"loss_last", last.loss},
                           {"weights_sha256", train.weights_sha256()}};
  if (options.floor) {
    const auto products = cpu::library_products(train.backward().graph(), options.device.threads);
    double floor = 0;
    for (const cpu::LibraryProduct& product : products)
      floor += static_cast<double>(product.count) * product.milliseconds;
    report["gemm_floor_ms"] = floor;
    report["products"] = as_json(products);
  }
  if (options.json) {
    std::cout << report.dump() << "\n";
    return;
  }
  for (const auto& [key, value] : report.items())
    if (!value.is_array()) std::cout << fmt::format("{:<26}{}\n", key, value.dump());
  std::cout << memory_table(train.backward().plan());
  if (options.profile) {
    double total = 0;
    for (const double t : times) total += t;
    print_profile(train.backward(), total);
    print_slowest(train.backward());
    print_profile(train.update(), total);
  }
}

}  // namespace

void add_bench_step_command(CLI::App& bench) {
  CLI::App* command = bench.add_subcommand("step", "full training steps: forward, backward, clip, AdamW");
  auto options = std::make_shared<BenchOptions>();
  command->add_option("--model", options->model.model, "one of: " + model_names())->required();
  add_model_options(*command, options->model);
  command
      ->add_option_function<std::string>(
          "--device",
          [options](const std::string& name) {
            options->device.kind = name == "cuda" ? DeviceKind::kCuda : DeviceKind::kCpu;
          },
          "cpu or cuda")
      ->check(CLI::IsMember({"cpu", "cuda"}));
  command->add_option("--threads", options->device.threads, "threads of the cpu backend")
      ->check(CLI::PositiveNumber);
  command->add_option("--steps", options->steps, "steps to time")->check(CLI::PositiveNumber);
  command->add_option("--warmup", options->warmup, "steps before")->check(CLI::NonNegativeNumber);
  command->add_option("--recompute", options->recompute, "none, fused, cheap or block");
  command->add_option("--disable-pass", options->disabled, "leave this pass out");
  command
      ->add_option("--precision", options->precision,
                   "fp32; bf16: compute in bf16, parameters and gradients in f32; bf16_pure: these in bf16 "
                   "too; tf32: f32 "
                   "whose products round their operands, on a GPU")
      ->check(CLI::IsMember({"fp32", "bf16", "bf16_pure", "tf32"}));
  command
      ->add_option_function<std::string>(
          "--moments", [options](const std::string& name) { options->narrow_moments = name == "bf16"; },
          "of AdamW, with bf16_pure: fp32 or bf16")
      ->check(CLI::IsMember({"fp32", "bf16"}));
  command->add_flag("--json", options->json, "print one JSON object");
  command->add_flag("--profile", options->profile, "time every step of the plan");
  command->add_flag("--floor", options->floor,
                    "also time every matrix product as one call of oneDNN with all threads");
  command->callback([options] { run_bench_step(*options); });
}

}  // namespace lockstep
