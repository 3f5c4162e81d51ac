// The figures of reading one job's training records, as one JSON line that bench/input.py puts beside other
// input pipelines (bench/peers/input_base.py prints the same): time from opening the data to the first batch,
// records and processor time of a window of continuous reading, and, where asked for, sums over an epoch that
// do not depend on its order, one of which ties the columns of a record together, and resuming in its middle.
#pragma once
#include <nlohmann/json.hpp>

#include "job/spec.h"

namespace lockstep {

struct FiguresOptions {
  double warm_up = 1;  // seconds of reading before the window; both are made whole epochs
  double seconds = 3;  // of the window
  bool check = false;  // also the sums of an epoch, and resuming
};

nlohmann::json input_figures(const JobSpec& spec, const FiguresOptions& options);

}  // namespace lockstep
