#include "observe/progress_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "base/number_text.h"
#include "observe/record_fields.h"

namespace lockstep {
namespace {

constexpr double kMemorySeconds = 10;

struct Part {
  std::string text;
  int rank;  // 0 stays; the highest goes first
};

std::string shares_text(const StepShares& spent) {
  const double total = spent.total();
  if (!(total > 0)) return "";
  std::string text;
  const auto add = [&](const char* name, double seconds) {
    const auto percent = std::lround(100 * seconds / total);
    if (percent > 0) text += fmt::format("{}{} {}%", text.empty() ? "" : " ", name, percent);
  };
  add("compute", spent.compute);
  add("comm", spent.exposed_comm);
  add("input", spent.input_wait);
  add("optimizer", spent.optimizer);
  add("other", spent.other);
  return text;
}

std::vector<Part> parts_of(const ProgressState& state) {
  const StepRecord& last = state.last;
  std::vector<Part> parts;
  parts.push_back({state.total_steps > 0 ? fmt::format("step {}/{}", last.step, state.total_steps)
                                         : fmt::format("step {}", last.step),
                   0});
  parts.push_back({"loss " + short_number(last.loss, 4), 1});
  parts.push_back({"lr " + short_number(last.lr), 4});
  parts.push_back({"norm " + short_number(last.grad_norm), 5});
  parts.push_back({last.tokens > 0 ? rate_text(state.recent.tokens_per_second()) + " tokens/s"
                                   : rate_text(state.recent.samples_per_second()) + " samples/s",
                   3});
  if (state.seconds_left) parts.push_back({"eta " + duration_text(*state.seconds_left), 2});
  if (std::string shares = shares_text(state.recent.spent()); !shares.empty())
    parts.push_back({std::move(shares), 6});
  return parts;
}

std::string joined(const std::vector<Part>& parts) {
  std::string text;
  for (const Part& part : parts) text += (text.empty() ? "" : "  ") + part.text;
  return text;
}

}  // namespace

void RecentSteps::add(const StepRecord& record) {
  const double keep = std::exp(-record.seconds / kMemorySeconds);
  seconds_ = seconds_ * keep + record.seconds;
  samples_ = samples_ * keep + static_cast<double>(record.samples);
  tokens_ = tokens_ * keep + static_cast<double>(record.tokens);
  const StepShares& shares = record.shares;
  spent_ = {spent_.compute * keep + shares.compute, spent_.exposed_comm * keep + shares.exposed_comm,
            spent_.input_wait * keep + shares.input_wait, spent_.optimizer * keep + shares.optimizer,
            spent_.other * keep + shares.other};
}

std::string progress_text(const ProgressState& state, int width) {
  std::vector<Part> parts = parts_of(state);
  std::string text = joined(parts);
  const auto room = static_cast<size_t>(std::max(0, width));
  while (text.size() > room && parts.size() > 1) {
    parts.erase(std::ranges::max_element(parts, {}, &Part::rank));
    text = joined(parts);
  }
  return text.substr(0, room);
}

std::string evaluation_text(const EvalRecord& record) {
  std::string text = fmt::format("eval at {}: loss {}", record.step, short_number(record.loss, 4));
  visit_scores(record, [&](std::string_view name, const std::optional<double>& score) {
    if (score) text += fmt::format("  {} {}", name, score_text(*score));
  });
  return text + (record.best ? "  (best so far)" : "");
}

std::string score_text(double score) { return std::isnan(score) ? "undefined" : short_number(score, 4); }

std::string duration_text(double seconds) {
  if (!std::isfinite(seconds) || seconds > 1e10) return "?";
  const auto whole = std::max<int64_t>(0, std::llround(seconds));
  const int64_t minutes = whole / 60, hours = minutes / 60, days = hours / 24;
  if (days > 0) return fmt::format("{}d {:02}:{:02}", days, hours % 24, minutes % 60);
  if (hours > 0) return fmt::format("{}:{:02}:{:02}", hours, minutes % 60, whole % 60);
  return fmt::format("{}:{:02}", minutes, whole % 60);
}

std::string rate_text(double per_second) {
  constexpr std::array kUnits{"", "k", "M", "G", "T"};
  size_t unit = 0;
  // 999.6 is 1k, not 1000.
  while (std::abs(per_second) >= 999.5 && unit + 1 < kUnits.size()) {
    per_second /= 1000;
    ++unit;
  }
  return short_number(per_second) + kUnits[unit];
}

}  // namespace lockstep
