// The folder of a run and the files in it that say what it is: identity.json, job.yaml (the effective job),
// for tables encoding.txt (how columns become inputs) and labels.json (what the label means: the task, the
// classes in the order of the model's answers, or mean and deviation of a number), and starts.jsonl (when it
// was started, and where it went on).
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "data/transform/label_encoding.h"
#include "prepare/job_parts.h"

namespace lockstep {

using NamedText = std::pair<std::string, std::string>;

// All but the last: name, content. They also go into every checkpoint. `asked` is the effective job as it
// was asked for, which is kept with the task that the labels decided: what a launcher says about the number
// of workers is not part of it.
std::vector<NamedText> describing_files(const JobParts& parts, JobSpec asked);
// UserError where the output folder cannot be made or written, or holds files under a run's names that no run
// wrote, such as a job.yaml of the user's. Touches nothing.
void require_run_folder(const JobSpec& spec);
// Creates the folder where needed; removes the summary and diagnosis of an earlier start, and what it left
// half-written. A kept job that is run again as it is stays as it is.
void open_run_folder(const JobSpec& spec, const std::vector<NamedText>& files);

// One line of starts.jsonl.
struct RunStart {
  std::string time, identity;
  int64_t step = 0;  // that it goes on from
  int64_t workers = 1;
};
// Adds it; returns how many starts of this identity came before. `fresh` forgets them.
int64_t record_start(const std::string& folder, const RunStart& start, bool fresh);

// What the labels of a tabular model mean, from the folder of its run or of a checkpoint. Throws UserError.
LabelEncoding read_labels(const std::string& folder);

std::string summary_path(const std::string& folder);
std::string diagnosis_path(const std::string& folder);

}  // namespace lockstep
