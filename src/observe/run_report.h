// A run as a page in a terminal: its figures, its evaluations, and its loss as a plot.
#pragma once
#include <string>

#include "observe/run_view.h"

namespace lockstep {

struct ReportOptions {
  int width = 80;  // columns, for the plot
  bool unicode = true;
};

std::string run_report(const RunView& run, const ReportOptions& options = {});
// The same for programs: folder, finished, summary, evaluations, last_step.
std::string run_report_json(const RunView& run);

}  // namespace lockstep
