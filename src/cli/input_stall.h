// How long steps of a given length wait for a job's records: steps are emulated that take a little longer
// than reading their records does, so that they should never wait.
//
// How fast records are read depends on the batch: the one in use and the next take memory from blocks, and
// where these are short of it, records are decoded more often. A step is therefore given as many records as
// can be read in batches of that size.
//
// Machines change their speed, and steps that should have some slack then have less or none. What can be read
// is therefore measured right before and right after each run of steps, and runs between which it changed
// give way to steadier ones: chosen by that alone, never by how long steps waited. Beside the wait stands
// what the machine did meanwhile (cli/machine_noise.h).
#pragma once
#include <nlohmann/json.hpp>

#include "cli/machine_noise.h"
#include "data/stream/input_report.h"
#include "job/spec.h"

namespace lockstep {

// Steps take this much longer than reading their records.
inline constexpr double kStallSlack = 1.2;

struct MeasuredReading {
  int64_t batch = 0;  // records of a step
  double records_per_second = 0;
  InputReport report;  // since the readers have found out how many of them it takes
  MachineNoise machine;
  double between_processors = 0;  // nanoseconds, before and after, the longer
  double late = 0;                // seconds that a step's thread was woken too late, on average

  double waited() const { return report.waited_in_all() / report.seconds; }
  // Seconds of a processor that a record took.
  double processor_per_record() const;
};

// Opens the job's data and reads batches for a while, with a step after each that keeps no processor busy.
MeasuredReading measure_reading(const JobSpec& spec, int64_t batch, double step_seconds, double seconds);

// Finds the largest batch whose reading leaves steps some slack, from capacities of batches that were tried:
// larger batches may be read more slowly.
class BatchSearch {
 public:
  BatchSearch(double step_ms, double most_per_second);

  int64_t batch() const { return next_; }  // to be tried
  // What was read in batches of that size. True: there is nothing left to try.
  bool tried(double records_per_second);
  // The one to take, once something was tried, and what can be read in it.
  int64_t found() const { return found_; }
  double records_per_second() const { return found_per_second_; }

 private:
  double step_ms_;
  int64_t next_;
  bool first_ = true;
  int64_t most_ = 0;   // the smallest that was too large; 0: none
  int64_t least_ = 0;  // the largest that was not
  int64_t found_ = 0;
  double found_per_second_ = 0;
};

// Emulated steps, and what could be read in batches of that size right before and after them.
struct StallRun {
  MeasuredReading before, steps, after;

  double waited() const { return steps.waited(); }
  // How much what can be read changed, as a share of what it was.
  double drift() const;
  // How many times as long as reading its records a step took, by the slower of the two.
  double slack(double step_ms) const;
};

// The steadiest `count` of them, in the order in which they were measured.
std::vector<StallRun> steadiest(std::vector<StallRun> runs, int count);

struct MeasuredStall {
  double step_ms = 0;
  double records_per_second = 0;  // that can be read in batches of this size
  int64_t batch_bytes = 0;
  int64_t begins_with = 0;  // bytes of rows that an epoch begins with; 0: it does not mix blocks
  int unsteady = 0;         // runs that were measured and not taken
  std::vector<StallRun> runs;

  // The run in which steps waited longest.
  const StallRun& worst() const;
  double waited() const { return worst().waited(); }
  // What was waited for and why; where memory does not allow for such steps, that, with figures.
  std::string sentence(double most_per_second) const;
};

// With steps of that length, so many times; `most_per_second` is what can be read at most, in small batches.
MeasuredStall measure_stall(const JobSpec& spec, double most_per_second, double step_ms, double seconds,
                            int repeats);

// The same for several lengths of steps, and what can be read at most, for bench/input-stall.py.
nlohmann::json stall_figures(const JobSpec& spec, const std::vector<double>& step_ms, double seconds,
                             int repeats);

}  // namespace lockstep
