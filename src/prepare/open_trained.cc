#include "prepare/open_trained.h"

#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "job/parse.h"
#include "prepare/job_model.h"
#include "train/checkpoint/checkpoint_folder.h"
#include "train/checkpoint/checkpoint_writer.h"
#include "train/update/ema.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

bool exists(const std::string& path) {
  std::error_code error;
  return fs::exists(path, error);
}

// The job may keep its checkpoints in another folder, and the run may have been moved since.
std::string checkpoint_of_run(const std::string& run) {
  if (const auto latest = latest_checkpoint(run)) return latest->path;
  const std::string job = run + "/job.yaml";
  if (exists(job)) {
    const std::string folder = load_job(job).checkpoint.dir;
    const auto latest = folder.empty() ? std::nullopt : latest_checkpoint(folder);
    if (latest) return latest->path;
    throw UserError("{} holds a run without a complete checkpoint{}; train it first", run,
                    folder.empty() ? "" : fmt::format(", and so does {}", folder));
  }
  throw UserError(
      "{} holds neither a run nor a checkpoint; give the `output` folder of a job, or a folder "
      "checkpoint-<step> in it",
      run);
}

std::string text_beside(const std::string& folder, const char* name) {
  const std::string path = fmt::format("{}/{}", folder, name);
  return exists(path) ? read_file(path) : "";
}

InputSizes sizes_in(const SafetensorsReader& weights) {
  InputSizes sizes{.tables = 0, .dense = 0, .padded = true};
  while (weights.contains(fmt::format("table.{}.weight", sizes.tables))) ++sizes.tables;
  if (weights.contains("bottom.0.weight")) sizes.dense = weights.at("bottom.0.weight").tensor.shape[1];
  return sizes;
}

}  // namespace

TrainedModel::TrainedModel(std::string checkpoint)
    : reader_(std::make_shared<const CheckpointReader>(std::move(checkpoint))),
      spec_(load_job(path() + "/job.yaml")),
      encoding_(text_beside(path(), "encoding.txt")),
      inputs_(sizes_in(reader_->tensors(kModelFile))),
      averaged_(reader_->has_tensors(kAverageFile)) {
  if (spec_.model.family == nullptr)
    throw UserError("{}: the job names no model.family; only those can be opened", path());
  const Model model = evaluation(1);
  for (const GraphInput& input : model.graph.inputs()) {
    if (input.role == Role::kInput) continue;
    const Type& type = model.graph.type(input.value);
    weights_.push_back({model.graph.name(input.value), type.dtype, type.shape});
    reader_->tensors(kModelFile).at(weights_.back());  // throws where the checkpoint has another one
  }
}

Model TrainedModel::evaluation(int64_t batch) const { return build_job_evaluation(spec_, inputs_, batch); }

void TrainedModel::read(const TensorSpec& weight, int64_t first, std::span<std::byte> into) const {
  if (averaged_) {
    const SafetensorsReader& averages = reader_->tensors(kAverageFile);
    const std::string name = average_name(weight.name);
    if (averages.contains(name))
      return averages.read(averages.at({name, weight.dtype, weight.shape}), into, first);
  }
  const SafetensorsReader& weights = reader_->tensors(kModelFile);
  weights.read(weights.at(weight), into, first);
}

TrainedModel open_trained(const std::string& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) throw UserError("there is no folder {}", path);
  // Without a slash at the end, which names in messages would repeat.
  std::string folder = path;
  while (folder.size() > 1 && folder.ends_with('/')) folder.pop_back();
  return TrainedModel(exists(folder + "/" + kManifestFile) ? folder : checkpoint_of_run(folder));
}

}  // namespace lockstep
