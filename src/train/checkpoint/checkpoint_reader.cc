#include "train/checkpoint/checkpoint_reader.h"

#include <algorithm>

#include "base/error.h"
#include "base/file.h"
#include "train/checkpoint/checkpoint_writer.h"

namespace lockstep {

SavedState parse_saved_state(std::string_view text, const std::string& path) {
  try {
    nlohmann::json json = nlohmann::json::parse(text);
    return {identity_from_json(json.at("identity")), std::move(json.at("state"))};
  } catch (const nlohmann::json::exception& error) {
    throw UserError("{}: {}", path, error.what());
  } catch (const UserError& error) {
    throw UserError("{}: {}", path, error.what());
  }
}

CheckpointReader::CheckpointReader(std::string path)
    : path_(std::move(path)), manifest_(read_manifest(path_)) {
  for (const FileRecord& file : manifest_.files) verify_file(path_, file);
  for (const FileRecord& file : manifest_.files)
    if (file.name.ends_with(".safetensors")) tensors_.try_emplace(file.name, path_ + "/" + file.name);
  read_state();
}

void CheckpointReader::read_state() {
  const std::string path = path_ + "/" + kStateFile;
  if (std::ranges::find(manifest_.files, kStateFile, &FileRecord::name) == manifest_.files.end())
    throw UserError("{} is not named in {}", path, kManifestFile);
  saved_ = parse_saved_state(read_file(path), path);
}

const SafetensorsReader& CheckpointReader::tensors(const std::string& file) const {
  const auto found = tensors_.find(file);
  if (found == tensors_.end()) throw UserError("{} has no file {}", path_, file);
  return found->second;
}

const SafetensorsReader& CheckpointReader::weights() const {
  return tensors(has_tensors(kTrainedFile) ? kTrainedFile : kModelFile);
}

}  // namespace lockstep
