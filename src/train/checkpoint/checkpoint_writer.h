// Writes checkpoints that are complete or absent, whatever happens meanwhile: into a folder with a temporary
// name, every file synced, the manifest last, the folder synced, then renamed, then the run's folder synced.
// Tensors are fed to the writer, or filled into files that it has made and reads again.
// docs/checkpoints.md describes the files.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/hf/weight_files.h"
#include "safetensors/header.h"
#include "train/checkpoint/checkpoint_folder.h"
#include "train/checkpoint/identity.h"
#include "train/checkpoint/run_lock.h"

namespace lockstep {

inline constexpr const char* kModelFile = "model.safetensors";
// Instead of it, where frozen weights stay in the folder that they came from (model/hf/base_folder.h).
// Another name, so that nobody takes it for a whole model.
inline constexpr const char* kTrainedFile = kTrainedWeights;
inline constexpr const char* kOptimizerFile = "optimizer.safetensors";
inline constexpr const char* kResidualFile = "residual.safetensors";  // of compression with feedback
inline constexpr const char* kAverageFile = "average.safetensors";    // where a moving average is kept
inline constexpr const char* kStateFile = "state.json";

using ByteSink = std::function<void(std::span<const std::byte>)>;
// Gives the bytes of one tensor to the sink, in order, in pieces of any size.
using TensorFeed = std::function<void(const TensorSpec& tensor, const ByteSink& sink)>;

// One safetensors file of a checkpoint. The writer chooses the order in which it asks for the tensors.
struct TensorFile {
  std::string name;
  std::vector<TensorSpec> tensors;
  TensorFeed feed;
  SafetensorsMetadata metadata = {{"format", "pt"}};  // what transformers asks for before it reads a file
};

// Tensors that lie in host memory, which must stay as it is until the write is over.
TensorFile tensor_file(std::string name, const std::vector<NamedTensor>& tensors);

// Who writes the bytes of tensors into the files, where these are not fed: the writer makes every file with
// its header and in its length, and reads it afterwards, to hash it. Files and tensors are counted as the
// content has them and as a file's header has them.
class TensorFiller {
 public:
  virtual ~TensorFiller() = default;

  // Returns when all bytes are written, and those of other hosts are on the disk.
  virtual void fill(const std::string& folder) = 0;
  // What the file at this path holds then: all bytes of its tensors, in order. Throws UserError where that is
  // not what was written.
  virtual void check(size_t file, size_t tensor, int64_t first, std::span<const std::byte> bytes) = 0;
  virtual void check_end(size_t file, const std::string& path) = 0;
};

// The JSON library asserts its invariants in a move that is noexcept.
struct CheckpointContent {  // NOLINT(bugprone-exception-escape)
  int64_t step = 0;
  Identity identity;
  nlohmann::json state;                  // whatever the caller needs to go on; given back as it is
  std::vector<TensorFile> tensors;       // kModelFile, kOptimizerFile
  std::shared_ptr<TensorFiller> filler;  // instead of the feeds
  std::vector<std::pair<std::string, std::string>> texts;  // further files: name, content
  bool best = false;
  std::optional<int64_t> also_keep;  // a step whose checkpoint stays, however old
};

class CheckpointWriter {
 public:
  // Takes the lock of the run's folder and removes what killed processes left in it. Of the complete
  // checkpoints the newest `keep` are kept, the best one, and the one that the last write asked for; 0 keeps
  // all.
  CheckpointWriter(std::string run_dir, int64_t keep);

  // A checkpoint of the same step is replaced. On an error nothing but the temporary folder has changed, and
  // that is removed. `tensors_read` is called when the feeds are not needed any more, before anything waits
  // for the disk.
  CheckpointInfo write(const CheckpointContent& content, const std::function<void()>& tensors_read = {});
  // Forgets the checkpoints after `step`: for a run that goes on from there along another path.
  void discard_after(int64_t step);
  // What write() ends with; also for what a process that was killed before that left.
  void remove_old(const std::optional<int64_t>& also_keep) const;

 private:
  void write_files(const std::string& folder, const CheckpointContent& content,
                   const std::function<void()>& tensors_read) const;

  std::string run_dir_;
  int64_t keep_;
  RunLock lock_;
};

}  // namespace lockstep
