// How long steps of a given length wait for a job's records: steps are emulated that take a little longer
// than reading their records does, so that they should never wait.
#pragma once
#include <nlohmann/json.hpp>

#include "data/open.h"
#include "data/pipeline/input_report.h"
#include "job/spec.h"

namespace lockstep {

// Steps take this much longer than reading their records.
inline constexpr double kStallSlack = 1.2;

struct MeasuredReading {
  int64_t batch = 0;  // records of a step
  double records_per_second = 0;
  InputReport report;  // since the readers have found out how many of them it takes
};

// Reads batches for a while, with a step after each that keeps no processor busy.
MeasuredReading measure_reading(const JobSpec& spec, const std::shared_ptr<const Data>& data, int64_t batch,
                                double step_seconds, double seconds);
// With steps of that length; `records_per_second` is what can be read at most.
MeasuredReading measure_stall(const JobSpec& spec, const std::shared_ptr<const Data>& data,
                              double records_per_second, double step_ms, double seconds);

// The same for several lengths of steps, and what can be read at most, for bench/input-stall.py.
nlohmann::json stall_figures(const JobSpec& spec, const std::vector<double>& step_ms, double seconds);

}  // namespace lockstep
