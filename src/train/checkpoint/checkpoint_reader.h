// Reads a checkpoint after it has compared every byte of it with the manifest: nothing is taken from one that
// differs.
#pragma once
#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>

#include "safetensors/reader.h"
#include "train/checkpoint/identity.h"
#include "train/checkpoint/manifest.h"

namespace lockstep {

// What state.json holds.
struct SavedState {  // NOLINT(bugprone-exception-escape): the JSON library asserts in a move that is noexcept
  Identity identity;
  nlohmann::json state;
};
// Throws UserError that begins with `path` for any other text.
SavedState parse_saved_state(std::string_view text, const std::string& path);

class CheckpointReader {
 public:
  // Throws UserError that names the file, and the tensor where one is damaged.
  explicit CheckpointReader(std::string path);

  const std::string& path() const { return path_; }
  int64_t step() const { return manifest_.step; }
  const Identity& identity() const { return saved_.identity; }
  const nlohmann::json& state() const { return saved_.state; }
  // One of its safetensors files: kModelFile, kOptimizerFile.
  bool has_tensors(const std::string& file) const { return tensors_.contains(file); }
  const SafetensorsReader& tensors(const std::string& file) const;
  // kModelFile or, where the frozen weights lie in a folder of their own, kTrainedFile.
  const SafetensorsReader& weights() const;

 private:
  void read_state();

  std::string path_;
  CheckpointManifest manifest_;
  SavedState saved_;
  std::map<std::string, SafetensorsReader> tensors_;
};

}  // namespace lockstep
