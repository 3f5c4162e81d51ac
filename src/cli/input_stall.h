// How long steps of a given length wait for a job's records: steps are emulated that take a little longer
// than reading their records does, so that they should never wait.
//
// How fast records are read depends on the batch: the one in use and the next take memory from blocks, and
// where these are short of it, records are decoded more often. A step is therefore given as many records as
// can be read in batches of that size.
#pragma once
#include <nlohmann/json.hpp>

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

// Opens the job's data and reads batches for a while, with a step after each that keeps no processor busy.
MeasuredReading measure_reading(const JobSpec& spec, int64_t batch, double step_seconds, double seconds);

struct MeasuredStall {
  double step_ms = 0;
  double records_per_second = 0;  // that can be read in batches of this size
  int64_t batch_bytes = 0;
  MeasuredReading reading;

  double waited() const { return reading.report.waited_in_all() / reading.report.seconds; }
  // What was waited for and why; where memory does not allow for such steps, that, with figures.
  std::string sentence(double most_per_second) const;
};

// With steps of that length; `most_per_second` is what can be read at most, in small batches.
MeasuredStall measure_stall(const JobSpec& spec, double most_per_second, double step_ms, double seconds);

// The same for several lengths of steps, and what can be read at most, for bench/input-stall.py.
nlohmann::json stall_figures(const JobSpec& spec, const std::vector<double>& step_ms, double seconds);

}  // namespace lockstep
