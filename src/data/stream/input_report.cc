#include "data/stream/input_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace lockstep {
namespace {

constexpr double kKeepsUp = 0.01;

// What to change, by cause.
constexpr std::array<std::string_view, kWaitNames.size()> kAdvice{
    "reading the files is slow: put them on a faster disk, store them compressed, or raise data.readers",
    "decoding is slow: raise data.readers, or convert the files once to a format that is cheaper to decode",
    "transforms are slow: raise data.readers, or apply them once while the files are made",
    "gathering records into batches is slow: raise data.readers, or data.memory if blocks are read again",
    "batches are ready but wait for a slower one before them: raise data.memory, so that more are made ahead",
};

}  // namespace

InputReport InputReport::operator-(const InputReport& earlier) const {
  InputReport since = *this;
  since.batches -= earlier.batches;
  since.seconds -= earlier.seconds;
  for (size_t i = 0; i < waited.size(); ++i) since.waited[i] -= earlier.waited[i];
  since.consumer -= earlier.consumer;
  for (size_t i = 0; i < kStageNames.size(); ++i)
    since.stages.nanoseconds[i] -= earlier.stages.nanoseconds[i];
  since.stages.blocks -= earlier.stages.blocks;
  since.stages.bytes -= earlier.stages.bytes;
  since.stages.decoded -= earlier.stages.decoded;
  since.stages.used -= earlier.stages.used;
  return since;
}

double InputReport::waited_in_all() const { return std::accumulate(waited.begin(), waited.end(), 0.0); }

std::string_view InputReport::slowest() const {
  return kWaitNames[static_cast<size_t>(std::max_element(waited.begin(), waited.end()) - waited.begin())];
}

std::string InputReport::sentence() const {
  const double all = waited_in_all();
  const double share = seconds > 0 ? all / seconds : 0;
  if (share < kKeepsUp)
    return fmt::format("input keeps up: steps waited for it {:.1f} % of the time", 100 * share);
  const size_t worst = static_cast<size_t>(std::max_element(waited.begin(), waited.end()) - waited.begin());
  const std::string slow = fmt::format("steps waited for input {:.1f} % of the time, {:.0f} % of that for {}",
                                       100 * share, 100 * waited[worst] / all, kWaitNames[worst]);
  const auto is = [&](InputStage stage) { return worst == static_cast<size_t>(stage); };
  if (could_keep_rows && (is(InputStage::kDecode) || is(InputStage::kTransform)))
    return fmt::format("{}: {}; or do it once with data.cache: rows", slow, kAdvice[worst]);
  return fmt::format("{}: {}", slow, kAdvice[worst]);
}

namespace {

constexpr double kFading = 0.9;  // of what lately took time, from batch to batch

double seconds_between(std::chrono::steady_clock::time_point from, std::chrono::steady_clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

// Puts a wait down to the stages, in proportion to the work that was finished in it.
void attribute(double seconds, const StageTimes& before, const StageTimes& after, InputReport& report) {
  int64_t all = 0;
  for (size_t i = 0; i < kStageNames.size(); ++i) all += after.nanoseconds[i] - before.nanoseconds[i];
  if (all == 0) {
    report.waited[static_cast<size_t>(InputStage::kAssemble)] += seconds;
    return;
  }
  for (size_t i = 0; i < kStageNames.size(); ++i)
    report.waited[i] += seconds * static_cast<double>(after.nanoseconds[i] - before.nanoseconds[i]) /
                        static_cast<double>(all);
}

}  // namespace

void InputWaits::asked() {
  asked_ = Clock::now();
  if (report_.batches++ == 0) started_ = asked_;
  with_batches_ = kFading * with_batches_ + (handed_over_ ? seconds_between(*handed_over_, asked_) : 0);
  for_batches_ *= kFading;
  behind_since_ = {};
}

void InputWaits::waited(const StageTimes& before, const StageTimes& after) {
  const Clock::time_point end = Clock::now();
  const double seconds = seconds_between(asked_, end);
  const double behind = behind_since_ ? seconds_between(*behind_since_, end) : 0;
  for_batches_ += seconds;
  report_.waited[kReorderWait] += behind;
  attribute(seconds - behind, before, after, report_);
}

void InputWaits::handed_over() { handed_over_ = Clock::now(); }

void InputWaits::only_this_is_missing() {
  if (!behind_since_) behind_since_ = Clock::now();
}

void InputWaits::readers_rest() {
  if (!rest_since_) rest_since_ = Clock::now();
}

void InputWaits::readers_work() {
  if (rest_since_) report_.consumer += seconds_between(*rest_since_, Clock::now());
  rest_since_ = {};
}

InputReport InputWaits::report() const {
  InputReport report = report_;
  if (report.batches > 0) report.seconds = seconds_between(started_, Clock::now());
  return report;
}

}  // namespace lockstep
