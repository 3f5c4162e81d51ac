// What a job finds of earlier starts, and whether it may go on from there. Touches nothing: asked by
// `lockstep check` and before a run changes its folder.
#pragma once
#include <optional>
#include <string>

#include "observe/records.h"
#include "prepare/job_parts.h"

namespace lockstep {

// Where the job's checkpoints lie.
const std::string& checkpoint_folder(const JobSpec& spec);
// The step of `checkpoint-20`, which may also be given as its path or its number. UserError that lists those
// that are there.
int64_t step_to_resume(const JobSpec& spec, const std::string& from);
// UserError where the job asks for fewer steps than that checkpoint has made.
void require_steps_left(const JobParts& parts, const std::string& checkpoint, int64_t step);
// All that a run refuses about its folder and its newest checkpoint. Returns the step that it would go on
// from.
std::optional<int64_t> require_resumable(const JobParts& parts);
// The summary of a run in the output folder to which this job has nothing to add: the same identity, all of
// its steps, and the last evaluation. `stopped_early`: the evaluations of its last checkpoint say that it
// ends.
std::optional<RunSummary> finished_run(const JobParts& parts, bool stopped_early = false);
// For people: that it is finished, and what could be done.
std::string describe_finished(const std::string& output, const RunSummary& summary);

}  // namespace lockstep
