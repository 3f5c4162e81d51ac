// What must hold of any bytes that are given as the files which a run writes about itself.
#pragma once
#include <string_view>

namespace lockstep::testing {

// Reads the text as a metrics.jsonl. What is read must come back bit for bit when it is written and read
// again, and its surviving steps must ascend. Returns whether it was one with at least one line. Throws for
// anything but a UserError: that is a bug.
bool check_metrics(std::string_view text);
// The same for a summary.json.
bool check_summary(std::string_view text);

}  // namespace lockstep::testing
