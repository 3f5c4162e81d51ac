#include "prepare/trained_run.h"

#include <filesystem>

#include "base/cores.h"
#include "base/error.h"
#include "base/file.h"
#include "data/transform/table_encoding.h"
#include "job/open_model.h"
#include "job/parse.h"
#include "train/checkpoint/checkpoint_folder.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

std::string in_folder(const std::string& folder, const char* name) {
  return (fs::path(folder) / name).string();
}

bool is_checkpoint(const std::string& folder) { return fs::exists(in_folder(folder, kManifestFile)); }

// Where the checkpoints of a run lie: in its folder, or where its job put them.
std::string checkpoint_folder(const std::string& run) {
  if (latest_checkpoint(run)) return run;
  const std::string job = in_folder(run, "job.yaml");
  if (!fs::exists(job)) return run;
  const JobSpec spec = read_job(job);
  return spec.checkpoint.dir.empty() ? run : spec.checkpoint.dir;
}

// The job that is kept has every value written out, also defaults of sections that it does not use, where a
// user who wrote them would be asked what for.
void forget_unused(JobSpec& spec) {
  const auto forget = [&](std::string_view section) {
    std::erase_if(spec.origins, [&](const auto& entry) { return entry.first.starts_with(section); });
  };
  if (spec.data.subsample.where.empty()) forget("data.subsample.");
  if (spec.data.split.column.empty()) forget("data.split.");
}

}  // namespace

std::string find_checkpoint(const std::string& run_or_checkpoint) {
  std::error_code failure;
  if (!fs::is_directory(run_or_checkpoint, failure))
    throw UserError("{}: there is no such folder; name the output of a run, or one of its checkpoints",
                    run_or_checkpoint);
  if (is_checkpoint(run_or_checkpoint)) return run_or_checkpoint;
  const std::string folder = checkpoint_folder(run_or_checkpoint);
  if (const auto latest = latest_checkpoint(folder)) return latest->path;
  throw UserError(
      "{}: there is no complete checkpoint in it; name the output of a run that has written one, or a "
      "checkpoint-<step> folder",
      folder);
}

TrainedRun open_trained_run(const std::string& run_or_checkpoint, std::span<const std::string> overrides) {
  TrainedRun run;
  run.path = find_checkpoint(run_or_checkpoint);
  run.checkpoint = std::make_unique<CheckpointReader>(run.path);
  const std::string job = in_folder(run.path, "job.yaml");
  if (!fs::exists(job)) throw UserError("{}: the job that made this checkpoint is not in it", run.path);
  run.spec = read_job(job, overrides);
  run.base = open_kept_model(run.spec, run.path);
  if (run.base) require_base_weights(*run.spec.model.source, *run.base, run.path, available_cores().usable);
  forget_unused(run.spec);
  if (const std::string path = in_folder(run.path, "encoding.txt"); fs::exists(path))
    run.constants = read_file(path);
  if (run.spec.model.family->records == Records::kTable) run.labels = labels_in(run.constants);
  // One process on this machine uses the model, however many trained it.
  run.spec.strategy.workers = 1;
  run.spec.strategy.pipeline = run.spec.strategy.tensor = 1;
  run.spec.workerPoolSpecs.clear();
  if (const auto best = best_checkpoint(fs::path(run.path).parent_path().string());
      best && best->step != run.step() && !is_checkpoint(run_or_checkpoint))
    run.best_step = best->step;
  return run;
}

}  // namespace lockstep
