// Two runs beside each other: do their bits agree, and where not, since when.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "observe/run_view.h"

namespace lockstep {

struct Difference {
  std::string name;
  std::string first, second;  // empty: this run has none
  bool operator==(const Difference&) const = default;
};

struct RunComparison {
  // Not known where a run lacks the hash.
  std::optional<bool> same_weights, same_identity;
  std::vector<Difference> identity;  // the fields that differ, if both runs tell theirs
  int64_t common_steps = 0;          // steps that both have logged
  // The first of these in which a logged value differs in a bit, and all that differ there. NaN equals NaN.
  std::optional<int64_t> first_step;
  std::vector<Difference> values;
};

RunComparison compare_runs(const RunView& first, const RunView& second);

// A table of both with their difference, and the comparison in sentences.
std::string comparison_report(const RunView& first, const RunView& second);

}  // namespace lockstep
