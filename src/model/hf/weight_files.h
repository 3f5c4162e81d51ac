// HfWeightFiles: the tensors of a folder as Hugging Face's tools store them: model.safetensors, or the files
// that model.safetensors.index.json names.
//
// Opening reads headers alone; tensors are mapped when they are asked for, a piece at a time, so that nobody
// holds more than a piece. Files that hold pickled objects are refused: reading one may run any program.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "safetensors/reader.h"

namespace lockstep {

class ThreadPool;

// What a checkpoint holds where the rest of its weights lies in another folder (model/hf/base_folder.h).
inline constexpr const char* kTrainedWeights = "trained.safetensors";

struct StoredTensor {
  TensorEntry entry;
  size_t file = 0;

  const TensorSpec& spec() const { return entry.tensor; }
};

class HfWeightFiles {
 public:
  // `stem`: "model", or "adapter_model" for the folder of an adapter. Throws UserError that names the file
  // and what is wrong with it.
  explicit HfWeightFiles(std::string folder, std::string_view stem = "model");

  const std::string& folder() const { return folder_; }
  const std::vector<StoredTensor>& tensors() const { return tensors_; }  // by name
  const StoredTensor* find(std::string_view name) const;
  const std::string& file_of(const StoredTensor& tensor) const { return paths_[tensor.file]; }
  size_t file_count() const { return paths_.size(); }

  // Fills `into` with the tensor's bytes from `first` on. For those who read all of a large model: nothing is
  // mapped, which threads of one process have to wait for each other to do.
  void read(const StoredTensor& tensor, int64_t first, std::span<std::byte> into) const;
  // Bytes [first, first + bytes) of the tensor, in memory as long as the result lives.
  FileMapping map(const StoredTensor& tensor, int64_t first, int64_t bytes) const;
  bool same_bytes(const StoredTensor& a, const StoredTensor& b) const;

 private:
  void open(const std::string& name);
  void check_index(const std::string& path,
                   const std::vector<std::pair<std::string, std::string>>& indexed) const;

  std::string folder_;
  std::vector<std::string> paths_;
  std::vector<std::unique_ptr<SafetensorsReader>> files_;
  std::vector<StoredTensor> tensors_;
};

// Whoever reads all of some tensors does so in pieces of this many bytes, in the order of names.
inline constexpr int64_t kWeightPiece = 256 << 10;
struct WeightPiece {
  const StoredTensor* tensor = nullptr;
  int64_t first = 0, bytes = 0;
};
std::vector<WeightPiece> pieces_of(std::vector<const StoredTensor*> tensors);
// What names these tensors and their values, whichever files they lie in: over names, types and shapes, and
// the SHA-256 of every piece.
std::string hash_of_weights(const std::vector<WeightPiece>& pieces, const std::vector<std::string>& hashes);
// The same of tensors whose bytes nobody needs otherwise.
std::string hash_of_tensors(const HfWeightFiles& files, std::vector<const StoredTensor*> tensors,
                            ThreadPool& pool);

// The path of a file of the folder. A link must stay in the folder, or lead into the store of blobs beside
// the snapshots that Hugging Face's cache keeps; throws UserError for others, and where there is no file.
std::string file_inside(const std::string& folder, std::string_view name);

// What other programs need beside the weights, byte for byte: generation_config.json, the tokenizer's files,
// preprocessor_config.json, where they are there. Name, content.
std::vector<std::pair<std::string, std::string>> hf_companions(const std::string& folder);

}  // namespace lockstep
