#include "cli/input_stall.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <set>
#include <thread>

#include "base/error.h"
#include "cli/job_stream.h"

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;

// Share of the measured time that is read before.
constexpr double kWarmUp = 0.5;
// The records of a step are found by reading in batches of so many and trying again with what that gives.
constexpr int kTries = 4;
constexpr double kCloseEnough = 0.05;
// Positions that all windows of an epoch's beginning have records in: some times 16 lanes of 64 blocks.
constexpr int64_t kBeginning = 4096;
// Of the memory, an eighth is for held-out records, and a little is kept free for blocks on their way.
constexpr double kForTraining = 7.0 / 8, kForBlocks = 0.94;
// Processors are so much further from each other than before: reading is slower then.
constexpr double kFurther = 1.25;
// A record takes so much more of a processor than before: what could be read then cannot be read now.
constexpr double kDearer = 1.1;
// What can be read changed by less than this during a run: its steps had the slack that they should have.
constexpr double kSteady = 0.08;
// So many times as many runs as are asked for are measured at most.
constexpr int kMostRuns = 3;

double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

double mib(int64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

int64_t records_in(double step_ms, double per_second) {
  return std::max<int64_t>(1, static_cast<int64_t>(per_second * step_ms / 1e3 / kStallSlack));
}

int64_t bytes_of_beginning(const JobSpec& spec, const Data& data) {
  const int64_t block = data.train->block_records();
  if (block <= 1) return 0;
  std::vector<int64_t> records(static_cast<size_t>(std::min(kBeginning, data.train->size())));
  std::iota(records.begin(), records.end(), 0);
  job_read_order(spec, data).records_at(records, nullptr);
  std::set<int64_t> blocks;
  for (const int64_t record : records) blocks.insert(record / block);
  return static_cast<int64_t>(blocks.size()) * block * bytes_of_record(data.train->columns());
}

}  // namespace

MeasuredReading measure_reading(const JobSpec& spec, int64_t batch, double step_seconds, double seconds) {
  const double far_before = nanoseconds_between_processors();
  JobStream stream(spec, std::make_shared<const Data>(open_job_data(spec, expected_share(spec))), batch);
  int64_t next = 0;
  // Sleep ends late, above all where readers have all processors. The next step is so much shorter: otherwise
  // steps would take less than they should.
  double late = 0, late_in_all = 0;
  const auto read_for = [&](double time) {
    for (const Clock::time_point start = Clock::now(); since(start) < time;) {
      stream.get(next++);
      if (step_seconds == 0) continue;
      const Clock::time_point got = Clock::now();
      const double left = std::max(0.0, step_seconds - late);
      std::this_thread::sleep_for(std::chrono::duration<double>(left));
      late = std::min(since(got) - left, step_seconds);
      late_in_all += late;
    }
  };
  read_for(kWarmUp * seconds);
  late_in_all = 0;
  const MachineNoise machine = look_at_machine();
  const InputReport before = stream.report();
  read_for(seconds);
  const InputReport report = stream.report() - before;
  return {batch,
          static_cast<double>(report.batches * batch) / report.seconds,
          report,
          look_at_machine() - machine,
          std::max(far_before, nanoseconds_between_processors()),
          late_in_all / static_cast<double>(std::max<int64_t>(1, report.batches))};
}

double MeasuredReading::processor_per_record() const {
  const double records = records_per_second * report.seconds;
  return records > 0 ? machine.own / records : 0;
}

BatchSearch::BatchSearch(double step_ms, double most_per_second)
    : step_ms_(step_ms), next_(records_in(step_ms, most_per_second)) {}

bool BatchSearch::tried(double records_per_second) {
  const int64_t batch = next_;
  const int64_t allowed = records_in(step_ms_, records_per_second);
  const bool close =
      std::abs(static_cast<double>(allowed - batch)) <= kCloseEnough * static_cast<double>(batch);
  // As long as all were too large, what the smallest would allow.
  if (close || (allowed >= batch ? batch > least_ : least_ == 0)) {
    found_ = std::min(batch, allowed);
    found_per_second_ = records_per_second;
  }
  if (close) return true;
  if (allowed >= batch)
    least_ = std::max(least_, batch);
  else
    most_ = most_ == 0 ? batch : std::min(most_, batch);
  // From both sides, where it goes up and down.
  next_ = first_ ? allowed : (batch + allowed) / 2;
  first_ = false;
  if (next_ <= least_ || (most_ > 0 && next_ >= most_)) next_ = (least_ + (most_ > 0 ? most_ : allowed)) / 2;
  return next_ <= least_ || next_ == batch;
}

MeasuredStall measure_stall(const JobSpec& spec, double most_per_second, double step_ms, double seconds,
                            int repeats) {
  MeasuredStall stall;
  stall.step_ms = step_ms;
  BatchSearch search(step_ms, most_per_second);
  for (int i = 0; i < kTries; ++i)
    if (search.tried(measure_reading(spec, search.batch(), 0, seconds).records_per_second)) break;
  stall.records_per_second = search.records_per_second();
  std::vector<StallRun> runs;
  MeasuredReading before = measure_reading(spec, search.found(), 0, seconds);
  for (int steady = 0; steady < repeats && std::ssize(runs) < kMostRuns * repeats;) {
    // The slack that was found, at the speed that the machine has now.
    const double faster = before.records_per_second / search.records_per_second();
    const int64_t batch = std::max<int64_t>(1, std::llround(static_cast<double>(search.found()) * faster));
    const MeasuredReading steps = measure_reading(spec, batch, step_ms / 1e3, seconds);
    const MeasuredReading after = measure_reading(spec, batch, 0, seconds);
    runs.push_back({before, steps, after});
    if (runs.back().drift() <= kSteady) ++steady;
    before = after;
  }
  stall.unsteady = static_cast<int>(std::ssize(runs)) - repeats;
  stall.runs = steadiest(std::move(runs), repeats);
  const Data data = open_job_data(spec, expected_share(spec));
  stall.batch_bytes = search.found() * bytes_of_record(data.train->columns());
  stall.begins_with = bytes_of_beginning(spec, data);
  return stall;
}

double StallRun::drift() const {
  return std::abs(after.records_per_second - before.records_per_second) / before.records_per_second;
}

double StallRun::slack(double step_ms) const {
  const double could = std::min(before.records_per_second, after.records_per_second);
  return step_ms / 1e3 * could / static_cast<double>(steps.batch);
}

std::vector<StallRun> steadiest(std::vector<StallRun> runs, int count) {
  while (std::ssize(runs) > count)
    runs.erase(std::max_element(runs.begin(), runs.end(),
                                [](const StallRun& a, const StallRun& b) { return a.drift() < b.drift(); }));
  return runs;
}

const StallRun& MeasuredStall::worst() const {
  LOCKSTEP_CHECK(!runs.empty(), "no run of emulated steps");
  return *std::max_element(runs.begin(), runs.end(),
                           [](const auto& a, const auto& b) { return a.waited() < b.waited(); });
}

std::string MeasuredStall::sentence(double most_per_second) const {
  const auto& [before, run, after] = worst();
  const InputReport& report = run.report;
  // The batch in use is needed whole, and so is the next when its turn comes.
  if (2 * batch_bytes > report.budget)
    return fmt::format(
        "impossible in this memory: a batch takes {:.1f} MiB, the one in use and the next {:.1f}, and "
        "data.memory leaves {:.1f} to training records; raise it",
        mib(batch_bytes), mib(2 * batch_bytes), mib(report.budget));
  std::string said = report.sentence();
  if (waited() > 0.01) {
    const int64_t left = report.budget - 2 * batch_bytes;
    if (begins_with > left && begins_with > 0)
      said += fmt::format(
          "; an epoch begins with {:.1f} MiB of rows, and beside the batch in use and the next memory holds "
          "{:.1f}: data.memory {:.0f}MiB would hold them",
          mib(begins_with), mib(left),
          std::ceil(mib(begins_with + 2 * batch_bytes) / kForBlocks / kForTraining));
    if (const std::string noise = run.machine.sentence(report.seconds, report.stages.bytes); !noise.empty())
      said += "; meanwhile " + noise;
    if (worst().drift() > kSteady)
      said += fmt::format(
          "; {:.2f} million records/s could be read before, {:.2f} after: the machine changed its speed",
          before.records_per_second / 1e6, after.records_per_second / 1e6);
    if (run.between_processors > kFurther * before.between_processors && before.between_processors > 0)
      said += fmt::format(
          "; what one processor writes took {:.0f} ns to reach another, and {:.0f} while it was measured "
          "what can be read: the machine was slower",
          run.between_processors, before.between_processors);
    if (run.processor_per_record() > kDearer * before.processor_per_record() &&
        before.processor_per_record() > 0)
      said += fmt::format("; a record took {:.2f} us of a processor, and {:.2f} while that was measured",
                          1e6 * run.processor_per_record(), 1e6 * before.processor_per_record());
  }
  if (records_per_second > 0.9 * most_per_second) return said;
  if (2 * batch_bytes < report.budget / 8)
    return fmt::format(
        "{}; in batches of this size {:.2f} million records/s can be read, in small ones {:.2f}", said,
        records_per_second / 1e6, most_per_second / 1e6);
  return fmt::format(
      "{}; two batches take {:.1f} of {:.1f} MiB from the blocks that are mixed, so that {:.2f} million "
      "records/s can be read, where small batches would allow {:.2f}",
      said, mib(2 * batch_bytes), mib(report.budget), records_per_second / 1e6, most_per_second / 1e6);
}

nlohmann::json stall_figures(const JobSpec& spec, const std::vector<double>& step_ms, double seconds,
                             int repeats) {
  const MeasuredReading most = measure_reading(spec, spec.train.microbatch, 0, seconds);
  nlohmann::json figures{{"records_per_second", most.records_per_second}, {"steps", nlohmann::json::array()}};
  for (const double step : step_ms) {
    const MeasuredStall stall = measure_stall(spec, most.records_per_second, step, seconds, repeats);
    nlohmann::json runs = nlohmann::json::array();
    for (const StallRun& measured : stall.runs) {
      const MeasuredReading& run = measured.steps;
      runs.push_back(
          {{"input_wait", run.waited()},
           {"slack", measured.slack(step)},
           {"could_read_before", measured.before.records_per_second},
           {"could_read_after", measured.after.records_per_second},
           {"records_per_second", run.records_per_second},
           {"late_s", run.late},
           {"decoded_per_record", static_cast<double>(run.report.stages.decoded) /
                                      static_cast<double>(std::max<int64_t>(1, run.report.stages.used))},
           {"readers", run.report.readers},
           {"ahead", run.report.ahead},
           {"memory_peak_bytes", run.report.peak_bytes},
           {"memory_limit_bytes", run.report.budget},
           {"machine",
            {{"own_s", run.machine.own},
             {"others_s", run.machine.others()},
             {"stolen_s", run.machine.stolen},
             {"delayed_s", run.machine.delayed},
             {"storage_bytes", run.machine.storage_bytes},
             {"between_processors_ns", run.between_processors},
             {"between_processors_before_ns", measured.before.between_processors},
             {"processor_per_record_us", 1e6 * run.processor_per_record()},
             {"processor_per_record_before_us", 1e6 * measured.before.processor_per_record()}}}});
    }
    figures["steps"].push_back({{"step_ms", step},
                                {"records", stall.worst().steps.batch},
                                {"records_per_second", stall.records_per_second},
                                {"unsteady_runs", stall.unsteady},
                                {"batch_bytes", stall.batch_bytes},
                                {"begins_with_bytes", stall.begins_with},
                                {"input_wait", stall.waited()},
                                {"runs", std::move(runs)},
                                {"sentence", stall.sentence(most.records_per_second)}});
  }
  return figures;
}

}  // namespace lockstep
