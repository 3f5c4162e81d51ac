// A run's folder, read for people: the summary if it has ended, its steps and evaluations, its identity.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "observe/records.h"

namespace lockstep {

struct RunView {
  std::string folder;
  bool finished = false;  // there is a summary.json
  // Where the run has not finished: status "unfinished", and what metrics.jsonl tells. 0 or empty where it
  // tells nothing.
  RunSummary summary;
  // Those that the result consists of, each step once.
  std::vector<StepRecord> steps;
  std::vector<EvalRecord> evaluations;
  std::vector<std::pair<std::string, std::string>> identity;  // empty without identity.json
};

// Throws UserError for a folder that is no run, and for files in it that are damaged.
RunView open_run(const std::string& folder);

}  // namespace lockstep
