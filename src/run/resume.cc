#include "run/resume.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "observe/summary.h"
#include "run/run_folder.h"
#include "train/checkpoint/training_checkpoints.h"

namespace lockstep {

const std::string& checkpoint_folder(const JobSpec& spec) {
  return spec.checkpoint.dir.empty() ? spec.output : spec.checkpoint.dir;
}

int64_t step_to_resume(const JobSpec& spec, const std::string& from) {
  const std::string name = std::filesystem::path(from).filename().string();
  std::vector<std::string> names;
  for (const CheckpointInfo& checkpoint : list_checkpoints(checkpoint_folder(spec))) {
    names.push_back(std::filesystem::path(checkpoint.path).filename().string());
    if (name == names.back() || name == std::to_string(checkpoint.step)) return checkpoint.step;
  }
  throw UserError("--from {}: there is no such checkpoint in {}; {}", from, checkpoint_folder(spec),
                  names.empty() ? "there is none" : fmt::format("there is {}", fmt::join(names, ", ")));
}

void require_steps_left(const JobParts& parts, const std::string& checkpoint, int64_t step) {
  if (step <= parts.steps()) return;
  const JobSpec& spec = parts.spec;
  throw UserError(
      "{}: the job asks for {} steps, and {} has made {}; ask for {} or more, choose another output, or "
      "start "
      "over with --fresh",
      spec.where(spec.train.epochs ? "train.epochs" : "train.steps"), parts.steps(), checkpoint, step, step);
}

std::optional<int64_t> require_resumable(const JobParts& parts) {
  require_run_folder(parts.spec);
  const auto latest = latest_checkpoint(checkpoint_folder(parts.spec));
  if (!latest || !parts.options.reduce.exchange) return std::nullopt;
  const CheckpointReader checkpoint = open_checkpoint(latest->path);
  require_identity(checkpoint, parts.identity);
  require_steps_left(parts, latest->path, latest->step);
  const bool finished = latest->step == parts.steps() || finished_run(parts, true);
  if (!finished && holds_weights_alone(checkpoint)) refuse_to_go_on(latest->path);
  return latest->step;
}

std::optional<RunSummary> finished_run(const JobParts& parts, bool stopped_early) {
  const std::string path = summary_path(parts.spec.output);
  std::error_code failure;
  if (!std::filesystem::exists(path, failure)) return std::nullopt;
  RunSummary summary;
  try {
    summary = read_summary(path);
  } catch (const UserError&) {
    return std::nullopt;  // it is written anew
  }
  const bool all = summary.status == "done" && summary.steps == parts.steps();
  if (!all && !(summary.status == "stopped_early" && stopped_early)) return std::nullopt;
  if (summary.exit_code != 0 || summary.identity_sha256 != parts.identity.sha256()) return std::nullopt;
  if (parts.data.eval && !(summary.final_eval && summary.final_eval->step == summary.steps))
    return std::nullopt;
  const auto latest = latest_checkpoint(checkpoint_folder(parts.spec));
  if (!latest || latest->step != summary.steps) return std::nullopt;
  return summary;
}

std::string describe_finished(const std::string& output, const RunSummary& summary) {
  return fmt::format(
      "{} is finished: {} after {} steps, {}; nothing is left to do, and nothing was changed (--fresh starts "
      "over)",
      output, summary.status, summary.steps, summary.ended);
}

}  // namespace lockstep
