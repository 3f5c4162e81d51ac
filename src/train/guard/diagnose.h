// diagnose: from the facts of a bad step to its likely causes, each with its evidence in numbers, a remedy in
// a sentence, and the same remedy as --set arguments. docs/guard.md has the rules and their sources.
//
// Causes are ordered by points of evidence: facts (a bad record, all labels masked) before measurements (a
// rate 80 times the usual), measurements before settings that merely often go with the trouble. A cause that
// the facts contradict is not listed.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "train/guard/guard.h"
#include "train/guard/inspection.h"
#include "train/rate/schedule.h"

namespace lockstep {

struct TroubleFacts {
  StepNumbers numbers;
  Trouble trouble = Trouble::kNone;
  int64_t microbatches = 1;
  Inspection inspection;
  // Of the good steps before this one, the oldest first; as many as are at hand.
  std::vector<double> losses;
  std::vector<double> grad_norms;

  double lr = 0;  // of this step, cuts by rewinds included
  double peak_lr = 0;
  ScheduleSettings schedule;  // total_steps 0: open
  bool bf16 = false;
  std::string optimizer;
  double beta2 = 0.999;
  double clip_norm = 0;
};

struct Cause {
  std::string name;
  int points = 0;
  std::vector<std::string> evidence;  // sentences without a full stop
  std::string remedy;
  std::vector<std::string> sets;  // "train.lr.base=1e-4", for --set
};

struct Diagnosis {
  std::string headline;               // "step 17: the gradient norm is nan at a loss of 37.1"
  std::vector<std::string> findings;  // where: microbatch, samples, node, parameter
  std::vector<Cause> causes;          // the likeliest first
};

Diagnosis diagnose(const TroubleFacts& facts);

// Several lines for a terminal.
std::string to_text(const Diagnosis& diagnosis);
// For <run>/diagnosis.json; numbers that are not finite become strings.
nlohmann::json to_json(const TroubleFacts& facts, const Diagnosis& diagnosis);

}  // namespace lockstep
