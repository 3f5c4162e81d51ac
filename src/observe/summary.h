// <run>/summary.json: written when a run ends, whatever way it ends. A run that starts removes the summary of
// its predecessor, so that one that is there tells about the end.
#pragma once
#include <string>
#include <string_view>

#include "observe/records.h"

namespace lockstep {

// Under a temporary name, then renamed: there is a whole summary or none.
void write_summary(const std::string& path, const RunSummary& summary);
// Throws UserError that names the file and what is wrong with it.
RunSummary read_summary(const std::string& path);
RunSummary parse_summary(std::string_view text, const std::string& name);

// 2026-01-31T12:00:00Z, from seconds since 1970.
std::string utc_time(int64_t unix_seconds);

}  // namespace lockstep
