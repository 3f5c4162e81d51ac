// The folder of a run and the files in it that say what it is: job.yaml (the effective job), identity.json,
// and for tables encoding.txt (how columns become inputs).
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "prepare/job_parts.h"

namespace lockstep {

using NamedText = std::pair<std::string, std::string>;

// Those files: name, content. They also go into every checkpoint.
std::vector<NamedText> describing_files(const JobParts& parts);
// Creates the folder where needed; removes the summary and diagnosis of an earlier start.
void open_run_folder(const std::string& folder, const std::vector<NamedText>& files);

std::string summary_path(const std::string& folder);
std::string diagnosis_path(const std::string& folder);

}  // namespace lockstep
