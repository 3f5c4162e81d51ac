#include "train/checkpoint/training_checkpoints.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"

namespace lockstep {
namespace {

constexpr const char* kStepsApplied = "steps_applied";

TensorSpec spec_of(const StateTensor& tensor) { return {tensor.name, tensor.dtype, tensor.shape}; }

// Calls `piece(first byte, staging memory)` for all of the tensor, in order.
template <typename Piece>
void for_pieces(const StateTensor& tensor, std::span<std::byte> staging, const Piece& piece) {
  const auto most = static_cast<int64_t>(staging.size());
  for (int64_t first = 0; first < tensor.bytes(); first += most)
    piece(first, staging.first(static_cast<size_t>(std::min(most, tensor.bytes() - first))));
}

std::byte* byte_of(const StateTensor& tensor, int64_t first) {
  return static_cast<std::byte*>(tensor.data) + first;
}

TensorFile file_of(std::string name, Backend& backend, const std::vector<StateTensor>& tensors,
                   const SplitTensors& split, std::span<std::byte> staging) {
  TensorFile file;
  file.name = std::move(name);
  for (const StateTensor& tensor : tensors) file.tensors.push_back(spec_of(tensor));
  file.feed = [&backend, &tensors, &split, staging](const TensorSpec& wanted, const ByteSink& sink) {
    const auto found = std::find_if(tensors.begin(), tensors.end(),
                                    [&](const StateTensor& tensor) { return tensor.name == wanted.name; });
    for_pieces(*found, staging, [&](int64_t first, std::span<std::byte> host) {
      if (found->is_whole())
        backend.download(host.data(), byte_of(*found, first), static_cast<int64_t>(host.size()));
      else
        split.read(*found, first, host);
      sink(host);
    });
  };
  return file;
}

void read_back(const CheckpointReader& reader, const std::string& file, Backend& backend,
               const std::vector<StateTensor>& tensors, const SplitTensors& split,
               std::span<std::byte> staging) {
  if (tensors.empty()) return;
  const SafetensorsReader& from = reader.tensors(file);
  for (const StateTensor& tensor : tensors) {
    const TensorEntry& entry = from.at(spec_of(tensor));
    for_pieces(tensor, staging, [&](int64_t first, std::span<std::byte> host) {
      from.read(entry, host, first);
      if (tensor.is_whole())
        backend.upload(byte_of(tensor, first), host.data(), static_cast<int64_t>(host.size()));
      else
        split.write(tensor, first, host);
    });
  }
}

// Of several lines the one that begins like this.
void forget_line(std::string& lines, const std::string& begin) {
  const size_t at = lines.starts_with(begin) ? 0 : lines.find("\n" + begin) + 1;
  if (!lines.substr(at).starts_with(begin)) return;
  const size_t end = lines.find('\n', at) + 1;
  if (end - at < lines.size()) lines.erase(at, end - at);
}

}  // namespace

TrainingCheckpoints::TrainingCheckpoints(const std::string& folder, int64_t keep, Identity identity,
                                         std::vector<std::pair<std::string, std::string>> texts)
    : folder_(folder),
      identity_(std::move(identity)),
      texts_(std::move(texts)),
      staging_(kCheckpointStaging),
      writer_(std::make_unique<BackgroundCheckpointWriter>(folder, keep)) {
  if (const auto latest = latest_checkpoint(folder)) last_step_ = latest->step;
}

void TrainingCheckpoints::finish() { writer_->finish(); }

void TrainingCheckpoints::save(TrainStep& train, int64_t step, nlohmann::json state, bool best) {
  const TrainState& tensors = train.state();
  CheckpointContent content;
  content.step = step;
  content.identity = identity_;
  content.state = std::move(state);
  content.state[kStepsApplied] = train.steps_applied();
  content.texts = texts_;
  content.best = best;
  content.also_keep = retained_;
  content.tensors.push_back(file_of(kModelFile, train.backend(), tensors.model(), split_, staging_));
  if (!tensors.optimizer().empty())
    content.tensors.push_back(
        file_of(kOptimizerFile, train.backend(), tensors.optimizer(), split_, staging_));
  if (!tensors.averages().empty())
    content.tensors.push_back(file_of(kAverageFile, train.backend(), tensors.averages(), split_, staging_));
  if (!tensors.residuals().empty())
    content.tensors.push_back(file_of(kResidualFile, train.backend(), tensors.residuals(), split_, staging_));
  writer_->save(std::move(content), tensors.gate().hold());
  last_step_ = step;
}

CheckpointReader open_checkpoint(const std::string& path) {
  try {
    return CheckpointReader(path);
  } catch (const UserError& error) {
    const std::filesystem::path folder(path);
    std::optional<CheckpointInfo> other;
    for (const CheckpointInfo& one : list_checkpoints(folder.parent_path().string()))
      if (one.path != path) other = one;
    if (!other)
      throw UserError("{}\nthere is no other checkpoint; to start over, remove {}", error.what(), path);
    const std::string name = std::filesystem::path(other->path).filename().string();
    throw UserError("{}\nto go on from {}, remove {}, or say --from {}", error.what(), name, path, name);
  }
}

void require_identity(const CheckpointReader& checkpoint, const Identity& own) {
  std::string differences = diff(checkpoint.identity(), own);
  if (differences.empty()) return;
  // The graph follows from the rest, and the arithmetic from the precision: where something else differs they
  // say nothing new.
  forget_line(differences, "model.graph: ");
  if (differences.find("train.precision: ") != std::string::npos) forget_line(differences, "arithmetic: ");
  // Whatever else differs, setting it back would not help.
  if (differences.starts_with("contract: "))
    throw UserError(
        "{} was written by a version of Lockstep under whose contract the same job may give other bits; it "
        "cannot be continued with this one:\n{}\nfinish the run with the version that began it, choose "
        "another output, or start over with --fresh",
        checkpoint.path(), differences);
  throw UserError(
      "{} was written by another job; it cannot be continued with this one:\n{}\nset these back, choose "
      "another output, or start over with --fresh",
      checkpoint.path(), differences);
}

std::optional<TrainingCheckpoints::Restored> TrainingCheckpoints::restore(TrainStep& train) {
  writer_->finish();
  const auto latest = latest_checkpoint(folder_);
  if (!latest) return std::nullopt;
  return load(train, latest->path);
}

TrainingCheckpoints::Restored TrainingCheckpoints::rewind(TrainStep& train, int64_t step) {
  writer_->finish();
  Restored restored = load(train, checkpoint_path(folder_, step));
  writer_->idle_writer().discard_after(step);
  last_step_ = step;
  return restored;
}

// The staging memory is free: whoever calls this has waited for the writer.
TrainingCheckpoints::Restored TrainingCheckpoints::load(TrainStep& train, const std::string& path) {
  const CheckpointReader reader = open_checkpoint(path);
  require_identity(reader, identity_);
  const TrainState& tensors = train.state();
  tensors.gate().wait();
  read_back(reader, kModelFile, train.backend(), tensors.model(), split_, staging_);
  read_back(reader, kOptimizerFile, train.backend(), tensors.optimizer(), split_, staging_);
  read_back(reader, kAverageFile, train.backend(), tensors.averages(), split_, staging_);
  read_back(reader, kResidualFile, train.backend(), tensors.residuals(), split_, staging_);
  try {
    // Not get(): that would take any other number too, and one that is no int64 at that.
    train.restored(reader.state().at(kStepsApplied).get_ref<const int64_t&>());
  } catch (const nlohmann::json::exception& error) {
    throw UserError("{}: state.json is not what this version writes: {}", path, error.what());
  }
  return {path, reader.state()};
}

void TrainingCheckpoints::discard_all() {
  writer_->idle_writer().discard_after(-1);
  last_step_.reset();
}

void TrainingCheckpoints::complete(int64_t step, bool best) {
  const auto marked = best_checkpoint(folder_);
  if (best && (!marked || marked->step != step)) mark_best_checkpoint(folder_, step);
  writer_->idle_writer().remove_old(retained_);
}

}  // namespace lockstep
