#include "fuzz/run_files.h"

#include "base/error.h"
#include "observe/metrics_reader.h"
#include "observe/record_json.h"
#include "observe/summary.h"

namespace lockstep::testing {
namespace {

// By their text, in which NaN equals NaN.
std::string text_of(const Metrics& metrics) {
  std::string text;
  for (const StepRecord& record : metrics.steps) text += to_json_line(record) + "\n";
  for (const EvalRecord& record : metrics.evaluations) text += to_json_line(record) + "\n";
  return text;
}

}  // namespace

bool check_metrics(std::string_view text) {
  Metrics metrics;
  try {
    metrics = parse_metrics(text, "metrics.jsonl");
  } catch (const UserError&) {
    return false;
  }
  const std::string written = text_of(metrics);
  LOCKSTEP_CHECK(text_of(parse_metrics(written, "again")) == written, "differs when it is read again");
  int64_t last = 0;
  for (bool first = true; const StepRecord& record : surviving_steps(metrics.steps)) {
    LOCKSTEP_CHECK(first || record.step > last, "step {} follows step {}", record.step, last);
    last = record.step;
    first = false;
  }
  return !written.empty();
}

bool check_summary(std::string_view text) {
  RunSummary summary;
  try {
    summary = parse_summary(text, "summary.json");
  } catch (const UserError&) {
    return false;
  }
  const std::string written = to_json_text(summary);
  LOCKSTEP_CHECK(to_json_text(parse_summary(written, "again")) == written, "differs when it is read again");
  return true;
}

}  // namespace lockstep::testing
