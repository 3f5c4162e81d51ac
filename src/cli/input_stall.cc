#include "cli/input_stall.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "cli/job_stream.h"

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;

// Share of the measured time that is read before.
constexpr double kWarmUp = 0.5;

double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

}  // namespace

MeasuredReading measure_reading(const JobSpec& spec, const std::shared_ptr<const Data>& data, int64_t batch,
                                double step_seconds, double seconds) {
  JobStream stream(spec, data, batch);
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

MeasuredReading measure_stall(const JobSpec& spec, const std::shared_ptr<const Data>& data,
                              double records_per_second, double step_ms, double seconds) {
  const auto records = static_cast<int64_t>(records_per_second * step_ms / 1e3 / kStallSlack);
  return measure_reading(spec, data, std::max<int64_t>(1, records), step_ms / 1e3, seconds);
}

nlohmann::json stall_figures(const JobSpec& spec, const std::vector<double>& step_ms, double seconds) {
  const auto data = std::make_shared<const Data>(open_job_data(spec));
  const MeasuredReading most = measure_reading(spec, data, spec.train.microbatch, 0, seconds);
  nlohmann::json figures{{"records_per_second", most.records_per_second}, {"steps", nlohmann::json::array()}};
  for (const double step : step_ms) {
    const MeasuredReading measured = measure_stall(spec, data, most.records_per_second, step, seconds);
    const InputReport& report = measured.report;
    figures["steps"].push_back({{"step_ms", step},
                                {"records", measured.batch},
                                {"input_wait", report.waited_in_all() / report.seconds},
                                {"readers", report.readers},
                                {"ahead", report.ahead},
                                {"memory_peak_bytes", report.peak_bytes},
                                {"memory_limit_bytes", report.budget},
                                {"sentence", report.sentence()}});
  }
  return figures;
}

}  // namespace lockstep
