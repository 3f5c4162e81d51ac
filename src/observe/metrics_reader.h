// Reading <run>/metrics.jsonl, also that of a run that is still going or was killed.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "observe/records.h"

namespace lockstep {

struct Metrics {
  std::vector<StepRecord> steps;  // in the order of the file: after a rewind some come again
  std::vector<EvalRecord> evaluations;
  bool torn = false;  // the last line has no end and was left out
};

// A last line without a newline is one that was being written. Any other damage is a UserError that names
// file and line.
Metrics read_metrics(const std::string& path);
Metrics parse_metrics(std::string_view text, const std::string& name);

// The steps that the result consists of, each once and ascending: a step that comes again replaces itself and
// all that followed.
std::vector<StepRecord> surviving_steps(const std::vector<StepRecord>& steps);

}  // namespace lockstep
