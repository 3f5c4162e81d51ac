// lockstep lr JOB: the learning rate of a job's steps, as a table and a plot; or, with --range-test, which
// one its model and data can take. Touches nothing.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <set>

#include "base/number_text.h"
#include "cli/cli.h"
#include "cli/lr_range.h"
#include "job/files.h"
#include "job/parse.h"
#include "observe/plot.h"
#include "prepare/job_data.h"
#include "prepare/job_schedule.h"

namespace lockstep {
namespace {

constexpr int64_t kTableParts = 10;
constexpr int64_t kPlotPoints = 512;

struct LrOptions {
  std::string file;
  std::vector<std::string> overrides;
  bool ascii = false;
  bool range_test = false;
  LrRangeSettings range;
};

// `parts` + 1 steps spread evenly over [begin, end], with both.
void spread(std::set<int64_t>& steps, int64_t begin, int64_t end, int64_t parts) {
  const double stride = static_cast<double>(end - begin) / static_cast<double>(parts);
  for (int64_t i = 0; i <= parts; ++i)
    steps.insert(begin + static_cast<int64_t>(stride * static_cast<double>(i)));
}

// Where the course changes, and steps in between.
std::set<int64_t> corner_steps(const Schedule& schedule) {
  const int64_t total = schedule.settings().total_steps;
  std::set<int64_t> steps{1, total};
  for (const int64_t corner : {schedule.warmup_steps(), schedule.fall_begin(), schedule.fall_end()})
    for (const int64_t step : {corner, corner + 1})
      if (step >= 1 && step <= total) steps.insert(step);
  return steps;
}

std::string_view phase(const Schedule& schedule, int64_t step) {
  if (step < schedule.warmup_steps()) return "warm-up";
  if (schedule.lr(step) == schedule.peak()) return "peak";
  if (schedule.lr(step) == schedule.settings().min) return "min";
  return "decay";
}

void print_table(const Schedule& schedule) {
  const int64_t total = schedule.settings().total_steps;
  std::set<int64_t> steps = corner_steps(schedule);
  if (schedule.warmup_steps() > 1) spread(steps, 1, schedule.warmup_steps(), 4);
  spread(steps, 1, total, kTableParts);
  std::cout << fmt::format("{:>10}  {:>14}  {:>9}\n", "step", "learning rate", "of peak");
  for (const int64_t step : steps)
    std::cout << fmt::format("{:>10}  {:>14.6e}  {:>8.2f}%  {}\n", step, schedule.lr(step),
                             schedule.peak() > 0 ? 100 * schedule.lr(step) / schedule.peak() : 0.0,
                             phase(schedule, step));
}

void print_plot(const Schedule& schedule, bool ascii) {
  std::set<int64_t> steps = corner_steps(schedule);
  spread(steps, 1, schedule.settings().total_steps, kPlotPoints);
  std::vector<double> x, y;
  for (const int64_t step : steps) {
    x.push_back(static_cast<double>(step));
    y.push_back(schedule.lr(step));
  }
  PlotOptions options;
  options.unicode = !ascii && environment_is_utf8();
  options.from_zero = true;
  options.x_name = "step";
  std::cout << line_plot(x, y, options);
}

void run_lr(const LrOptions& options) {
  const JobSpec spec = load_job(options.file, options.overrides);
  if (options.range_test) return run_range_test(spec, options.range, options.ascii);
  ResolvedJob job = resolve(spec);
  // Epochs become steps when the records are counted, as training counts them.
  if (!job.steps) {
    require_files(spec);
    job = resolve(
        spec, {.parameters = {}, .train_samples = open_job_data(spec, expected_share(spec)).train->size()});
  }
  const Schedule schedule = job_schedule(spec, job);
  std::cout << fmt::format("peak      {}\n", schedule.reason())
            << fmt::format("steps     {} of {} samples, of which {} warm up\n", *job.steps,
                           spec.train.global_batch, schedule.warmup_steps());
  if (schedule.fall_end() > schedule.fall_begin())
    std::cout << fmt::format("decay     {} from step {} to {}, down to {}\n", name_of(spec.train.lr.decay),
                             schedule.fall_begin(), schedule.fall_end(), short_number(spec.train.lr.min));
  else
    std::cout << fmt::format("decay     {}\n", name_of(spec.train.lr.decay));
  std::cout << "\n";
  print_plot(schedule, options.ascii);
  std::cout << "\n";
  print_table(schedule);
}

}  // namespace

void add_lr_command(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("lr", "print the learning rate of a job's steps, as a table and a plot");
  auto options = std::make_shared<LrOptions>();
  command->add_option("job", options->file, "the job file")->required();
  command
      ->add_option("--set", options->overrides,
                   "key=value, as in train.lr.base=1e-3 (may be given several times)")
      ->allow_extra_args(false);
  command->add_flag("--ascii", options->ascii, "plot with plain characters, whatever the locale");
  CLI::Option* test = command->add_flag("--range-test", options->range_test,
                                        "train with rates that rise from step to step, and recommend one");
  command->add_option("--from", options->range.from, "the first rate of the range test")
      ->capture_default_str()
      ->needs(test);
  command->add_option("--to", options->range.to, "its last rate")->capture_default_str()->needs(test);
  command->add_option("--steps", options->range.steps, "its length")->capture_default_str()->needs(test);
  command->callback([options] { run_lr(*options); });
}

}  // namespace lockstep
