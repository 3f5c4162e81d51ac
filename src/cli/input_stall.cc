#include "cli/input_stall.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

#include "cli/job_stream.h"

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;

// Share of the measured time that is read before.
constexpr double kWarmUp = 0.5;
// The records of a step are found by reading in batches of so many and trying again with what that gives.
constexpr int kTries = 4;
constexpr double kCloseEnough = 0.05;

double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

double mib(int64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

int64_t records_in(double step_ms, double per_second) {
  return std::max<int64_t>(1, static_cast<int64_t>(per_second * step_ms / 1e3 / kStallSlack));
}

}  // namespace

MeasuredReading measure_reading(const JobSpec& spec, int64_t batch, double step_seconds, double seconds) {
  JobStream stream(spec, std::make_shared<const Data>(open_job_data(spec)), batch);
  int64_t next = 0;
  const auto read_for = [&](double time) {
    for (const Clock::time_point start = Clock::now(); since(start) < time;) {
      stream.get(next++);
      if (step_seconds > 0) std::this_thread::sleep_for(std::chrono::duration<double>(step_seconds));
    }
  };
  read_for(kWarmUp * seconds);
  const InputReport before = stream.report();
  read_for(seconds);
  const InputReport report = stream.report() - before;
  return {batch, static_cast<double>(report.batches * batch) / report.seconds, report};
}

MeasuredStall measure_stall(const JobSpec& spec, double most_per_second, double step_ms, double seconds) {
  MeasuredStall stall;
  stall.step_ms = step_ms;
  int64_t batch = records_in(step_ms, most_per_second);
  for (int i = 0; i < kTries; ++i) {
    stall.records_per_second = measure_reading(spec, batch, 0, seconds).records_per_second;
    const int64_t before = batch;
    batch = records_in(step_ms, stall.records_per_second);
    if (std::abs(static_cast<double>(batch - before)) <= kCloseEnough * static_cast<double>(batch)) break;
    // From both sides, where it goes up and down.
    if (i > 0) batch = (batch + before) / 2;
  }
  stall.reading = measure_reading(spec, batch, step_ms / 1e3, seconds);
  const auto columns = open_job_data(spec).train->columns();
  stall.batch_bytes = batch * bytes_of_record(columns);
  return stall;
}

std::string MeasuredStall::sentence(double most_per_second) const {
  const InputReport& report = reading.report;
  // The batch in use is needed whole, and so is the next when its turn comes.
  if (2 * batch_bytes > report.budget)
    return fmt::format(
        "impossible in this memory: a batch takes {:.1f} MiB, the one in use and the next {:.1f}, and "
        "data.memory leaves {:.1f} to training records; raise it",
        mib(batch_bytes), mib(2 * batch_bytes), mib(report.budget));
  std::string said = report.sentence();
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

nlohmann::json stall_figures(const JobSpec& spec, const std::vector<double>& step_ms, double seconds) {
  const MeasuredReading most = measure_reading(spec, spec.train.microbatch, 0, seconds);
  nlohmann::json figures{{"records_per_second", most.records_per_second}, {"steps", nlohmann::json::array()}};
  for (const double step : step_ms) {
    const MeasuredStall stall = measure_stall(spec, most.records_per_second, step, seconds);
    const InputReport& report = stall.reading.report;
    figures["steps"].push_back({{"step_ms", step},
                                {"records", stall.reading.batch},
                                {"records_per_second", stall.records_per_second},
                                {"batch_bytes", stall.batch_bytes},
                                {"input_wait", stall.waited()},
                                {"readers", report.readers},
                                {"ahead", report.ahead},
                                {"memory_peak_bytes", report.peak_bytes},
                                {"memory_limit_bytes", report.budget},
                                {"sentence", stall.sentence(most.records_per_second)}});
  }
  return figures;
}

}  // namespace lockstep
