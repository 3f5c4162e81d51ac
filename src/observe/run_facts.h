// A run's figures as short texts with names, in the order in which people ask for them: the rows of
// `lockstep show` and `lockstep compare`.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "observe/run_view.h"

namespace lockstep {

struct Fact {
  std::string name;
  std::string text;
  // What the difference of two runs is worth: times of day always differ; texts are equal or not.
  enum class Kind : uint8_t { kUncompared, kText, kAmount } kind = Kind::kText;
  double amount = 0;  // of an amount; differences are shown in percent
};

// What a run does not have (tokens, workers of an unfinished run) is left out.
std::vector<Fact> run_facts(const RunView& run);

}  // namespace lockstep
