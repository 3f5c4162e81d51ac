// From a job file's text to a JobSpec: read YAML, gather by path, combine, convert, fill in defaults.
//
// Every error is a UserError that starts with the place (job.yaml:14, --set) and says what to write instead.
// Nothing outside the text is looked at; that is resolve.h's part.
#pragma once
#include <span>
#include <string>
#include <string_view>

#include "job/spec.h"

namespace lockstep {

// `overrides` are the arguments of --set, "a.b=c", applied in order.
JobSpec parse_job(std::string_view text, const std::string& file,
                  std::span<const std::string> overrides = {});
JobSpec read_job(const std::string& path, std::span<const std::string> overrides = {});
// read_job, and the files that its model comes from opened (job/open_model.h).
JobSpec load_job(const std::string& path, std::span<const std::string> overrides = {});

}  // namespace lockstep
