#include "cli/lr_range.h"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>

#include "base/number_text.h"
#include "observe/plot.h"
#include "run/lr_search.h"

namespace lockstep {
namespace {

constexpr int64_t kReports = 10;
constexpr size_t kTableRows = 16;
// More digits than the test can tell would promise too much.
constexpr int kDigits = 2;

void report(const LrRange& range) {
  const auto done = static_cast<int64_t>(range.points().size());
  const int64_t stride = std::max<int64_t>(1, range.settings().steps / kReports);
  if (done == 0 || done % stride != 0) return;
  const LrRangePoint& point = range.points().back();
  std::cerr << fmt::format("step {}/{}  lr {}  loss {:.4g}\n", done, range.settings().steps,
                           short_number(point.lr), point.loss);
}

void print_plot(const LrRange& range, bool ascii) {
  std::vector<double> rates, losses;
  for (const LrRangePoint& point : range.points()) {
    rates.push_back(point.lr);
    // The last one may be anywhere; the rest is what is to be seen.
    losses.push_back(std::min(point.smooth, 2 * std::max(range.least_loss(), range.points().front().smooth)));
  }
  PlotOptions options;
  options.unicode = !ascii && environment_is_utf8();
  options.log_x = true;
  options.x_name = "learning rate";
  std::cout << "\nsmooth loss\n" << line_plot(rates, losses, options) << "\n";
}

void print_table(const LrRange& range, const std::optional<LrRangeAdvice>& advice) {
  const auto& points = range.points();
  const size_t stride = std::max<size_t>(1, points.size() / kTableRows);
  std::cout << fmt::format("{:>6}  {:>13}  {:>10}  {:>10}\n", "step", "learning rate", "loss", "smooth");
  for (size_t i = 0; i < points.size(); ++i) {
    std::string remark;
    if (advice && points[i].lr == advice->steepest) remark += "  falls fastest";
    if (advice && points[i].lr == advice->least) remark += "  least";
    if (i % stride != 0 && i + 1 != points.size() && remark.empty()) continue;
    std::cout << fmt::format("{:>6}  {:>13.3e}  {:>10.4g}  {:>10.4g}{}\n", i + 1, points[i].lr,
                             points[i].loss, points[i].smooth, remark);
  }
  std::cout << "\n";
}

void print_advice(const LrRangeAdvice& advice, const Schedule& schedule) {
  const ScheduleSettings& s = schedule.settings();
  const std::string peak = short_number(advice.peak(), kDigits);
  const std::string base = short_number(schedule.base_for(advice.peak()), kDigits);
  std::cout << fmt::format("falls fastest at      {}\n", short_number(advice.steepest, kDigits))
            << fmt::format("a tenth of the least  {}\n", short_number(advice.least / 10, kDigits))
            << fmt::format("recommended peak      {}, the smaller of the two\n", peak);
  if (advice.open)
    std::cout
        << "                      The loss was still falling at the end; try again with a higher --to.\n";
  if (base != peak)
    std::cout << fmt::format("{:<22}{}, as the rule takes it to global_batch {}\n",
                             fmt::format("at base_batch {}", s.base_batch), base, s.global_batch);
  std::cout << fmt::format("to use it             --set train.lr.base={}\n", base);
}

}  // namespace

void run_range_test(const JobSpec& spec, const LrRangeSettings& settings, bool ascii) {
  const LrSearch search = search_lr(spec, settings, report);
  const LrRange& range = search.range;
  const auto advice = range.advice();
  std::cout << fmt::format("range test  {} of {} steps, from {} to {}{}\n", range.points().size(),
                           settings.steps, short_number(settings.from), short_number(settings.to),
                           range.reason().empty() ? "" : "; " + range.reason());
  print_plot(range, ascii);
  print_table(range, advice);
  if (advice) return print_advice(*advice, search.schedule);
  std::cout
      << "The loss did not fall at any of these rates: nothing to recommend. Try other --from and --to, or "
         "look at the data.\n";
}

}  // namespace lockstep
