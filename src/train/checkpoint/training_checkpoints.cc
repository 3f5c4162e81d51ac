#include "train/checkpoint/training_checkpoints.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"

namespace lockstep {
namespace {

constexpr const char* kStepsApplied = "steps_applied";
constexpr const char* kWeightsAlone = "weights_alone";

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

// Those who read and write what is split know a tensor by where it stands in the state's lists.
using Tensors = std::vector<const StateTensor*>;

Tensors all_of(const std::vector<StateTensor>& tensors) {
  Tensors all;
  for (const StateTensor& tensor : tensors) all.push_back(&tensor);
  return all;
}

TensorFile fed_file(const StateFile& from, Backend& backend, const SplitTensors& split,
                    std::span<std::byte> staging) {
  TensorFile file{.name = from.name, .tensors = {}, .feed = {}};
  for (const StateTensor* tensor : from.tensors) file.tensors.push_back(spec_of(*tensor));
  file.feed = [&backend, tensors = from.tensors, &split, staging](const TensorSpec& wanted,
                                                                  const ByteSink& sink) {
    const StateTensor& found =
        **std::ranges::find(tensors, wanted.name, [](const StateTensor* tensor) { return tensor->name; });
    for_pieces(found, staging, [&](int64_t first, std::span<std::byte> host) {
      if (found.is_whole())
        backend.download(host.data(), byte_of(found, first), static_cast<int64_t>(host.size()));
      else
        split.read(found, first, host);
      sink(host);
    });
  };
  return file;
}

void read_back(const SafetensorsReader& from, Backend& backend, const Tensors& tensors,
               const SplitTensors& split, std::span<std::byte> staging) {
  for (const StateTensor* tensor : tensors) {
    const TensorEntry& entry = from.at(spec_of(*tensor));
    for_pieces(*tensor, staging, [&](int64_t first, std::span<std::byte> host) {
      from.read(entry, host, first);
      if (tensor->is_whole())
        backend.upload(byte_of(*tensor, first), host.data(), static_cast<int64_t>(host.size()));
      else
        split.write(*tensor, first, host);
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

void TrainingCheckpoints::save(TrainStep& train, int64_t step, nlohmann::json state, bool best,
                               bool weights_alone) {
  const TrainState& tensors = train.state();
  CheckpointContent content;
  content.step = step;
  content.identity = identity_;
  content.state = std::move(state);
  content.state[kStepsApplied] = train.steps_applied();
  content.texts = texts_;
  content.best = best;
  content.also_keep = retained_;
  if (weights_alone) content.state[kWeightsAlone] = true;
  std::vector<StateFile> files = state_files(tensors, left_out_, weights_alone);
  for (const StateFile& file : files)
    content.tensors.push_back(fed_file(file, train.backend(), split_, staging_));
  if (write_together_)
    content.filler = std::make_shared<OwnedParts>(tensors, std::move(files), workers_,
                                                  [this, weights_alone](const std::string& folder) {
                                                    return write_together_(folder, weights_alone, staging_);
                                                  });
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

bool holds_weights_alone(const CheckpointReader& checkpoint) {
  return checkpoint.state().contains(kWeightsAlone);
}

void refuse_to_go_on(const std::string& checkpoint) {
  throw UserError(
      "{} holds weights alone (checkpoint.final: weights), without what the optimizer needs to go on; start "
      "another run from it (train.init_from.run), or start over with --fresh",
      checkpoint);
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
  const auto put_back = [&](const SafetensorsReader& from, const Tensors& list) {
    read_back(from, train.backend(), list, split_, staging_);
  };
  // One that holds all is as good where some would be left out.
  Tensors model = all_of(tensors.model());
  std::erase_if(model, [&](const StateTensor* tensor) {
    return left_out_.contains(tensor->name) && !reader.weights().contains(tensor->name);
  });
  put_back(reader.weights(), model);
  const bool alone = holds_weights_alone(reader);
  if (!alone && !tensors.optimizer().empty())
    put_back(reader.tensors(kOptimizerFile), all_of(tensors.optimizer()));
  if (!tensors.averages().empty()) put_back(reader.tensors(kAverageFile), all_of(tensors.averages()));
  if (!alone && !tensors.residuals().empty())
    put_back(reader.tensors(kResidualFile), all_of(tensors.residuals()));
  try {
    // Not get(): that would take any other number too, and one that is no int64 at that.
    train.restored(reader.state().at(kStepsApplied).get_ref<const int64_t&>());
  } catch (const nlohmann::json::exception& error) {
    throw UserError("{}: state.json is not what this version writes: {}", path, error.what());
  }
  return {path, reader.state(), alone};
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
