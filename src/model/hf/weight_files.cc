#include "model/hf/weight_files.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/sha256.h"
#include "base/thread_pool.h"
#include "model/hf/weight_index.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMapped = 16 << 20;  // bytes that are compared at a time
constexpr int64_t kLongestIndex = 256 << 20;
constexpr int64_t kLongestCompanion = 128 << 20;

// What is loaded by running it.
constexpr auto kPickles = std::to_array<std::string_view>(
    {"pytorch_model.bin", "pytorch_model.bin.index.json", "adapter_model.bin", "consolidated.00.pth"});
constexpr auto kOtherFrameworks = std::to_array<std::string_view>({"tf_model.h5", "flax_model.msgpack"});

constexpr auto kCompanions = std::to_array<std::string_view>(
    {"generation_config.json", "tokenizer.json", "tokenizer_config.json", "tokenizer.model",
     "special_tokens_map.json", "added_tokens.json", "vocab.json", "vocab.txt", "merges.txt", "spiece.model",
     "sentencepiece.bpe.model", "chat_template.jinja", "chat_template.json", "preprocessor_config.json"});

std::string in_folder(const std::string& folder, std::string_view name) {
  return (fs::path(folder) / name).string();
}

bool is_there(const std::string& path) {
  std::error_code failure;
  return fs::exists(fs::symlink_status(path, failure));
}

// Hugging Face's cache: <model>/snapshots/<revision>/<file> links to <model>/blobs/<hash>.
bool is_blob_of_snapshot(const fs::path& folder, const fs::path& target) {
  return folder.parent_path().filename() == "snapshots" &&
         target.parent_path() == folder.parent_path().parent_path() / "blobs";
}

[[noreturn]] void refuse_without_weights(const std::string& folder, const std::string& wanted) {
  if (is_there(in_folder(folder, kTrainedWeights)))
    throw UserError(
        "{} is a checkpoint that holds what was trained alone: export it first, as a whole model (lockstep "
        "export {} --to hf --merge) or as an adapter (--to peft)",
        folder, folder);
  for (const std::string_view name : kPickles)
    if (is_there(in_folder(folder, name)))
      throw UserError(
          "{} holds its weights in {}, which is a pickle: reading one may run any program; convert it with "
          "transformers (from_pretrained, then save_pretrained writes safetensors)",
          folder, name);
  for (const std::string_view name : kOtherFrameworks)
    if (is_there(in_folder(folder, name)))
      throw UserError("{} holds its weights in {}; only safetensors are read: convert it with transformers",
                      folder, name);
  throw UserError("{}: there is no {} in it, and no {}.index.json", folder, wanted, wanted);
}

}  // namespace

std::string file_inside(const std::string& folder, std::string_view name) {
  const std::string path = in_folder(folder, name);
  if (!is_bare_file_name(name))
    throw UserError("{}: '{}' is not the name of a file in this folder", folder, name);
  std::error_code failure;
  const fs::path home = fs::canonical(folder, failure);
  if (failure) throw UserError("{}: there is no such folder", folder);
  const fs::path target = fs::canonical(path, failure);
  if (failure) throw UserError("{}: there is no such file", path);
  if (target.parent_path() != home && !is_blob_of_snapshot(home, target))
    throw UserError("{} leads out of its folder, to {}; put the file itself there", path, target.string());
  if (!fs::is_regular_file(target, failure)) throw UserError("{} is not a file", path);
  return path;
}

HfWeightFiles::HfWeightFiles(std::string folder, std::string_view stem) : folder_(std::move(folder)) {
  const std::string single = fmt::format("{}.safetensors", stem);
  const std::string index = single + ".index.json";
  std::error_code failure;
  if (!fs::is_directory(folder_, failure)) throw UserError("{}: there is no such folder", folder_);
  std::vector<std::pair<std::string, std::string>> indexed;  // tensor, file
  if (is_there(in_folder(folder_, single))) {
    open(single);
  } else if (is_there(in_folder(folder_, index))) {
    const std::string path = file_inside(folder_, index);
    const WeightIndex parsed = parse_weight_index(read_file(path, kLongestIndex), path);
    std::vector<std::string> names;
    for (const auto& [tensor, file] : parsed.files) {
      indexed.emplace_back(tensor, file);
      names.push_back(file);
    }
    std::ranges::sort(names);
    names.erase(std::unique(names.begin(), names.end()), names.end());
    for (const std::string& name : names) {
      if (!is_there(in_folder(folder_, name)))
        throw UserError("{} names {}, which is not in the folder; fetch the missing file", path, name);
      open(name);
    }
  } else {
    refuse_without_weights(folder_, single);
  }
  std::ranges::sort(tensors_, {},
                    [](const StoredTensor& tensor) -> const std::string& { return tensor.spec().name; });
  for (size_t i = 1; i < tensors_.size(); ++i)
    if (tensors_[i].spec().name == tensors_[i - 1].spec().name)
      throw UserError("{} and {} both hold tensor {}", file_of(tensors_[i - 1]), file_of(tensors_[i]),
                      tensors_[i].spec().name);
  check_index(in_folder(folder_, index), indexed);
}

void HfWeightFiles::open(const std::string& name) {
  paths_.push_back(file_inside(folder_, name));
  files_.push_back(std::make_unique<SafetensorsReader>(paths_.back()));
  for (const TensorEntry& entry : files_.back()->tensors()) tensors_.push_back({entry, files_.size() - 1});
}

void HfWeightFiles::check_index(const std::string& path,
                                const std::vector<std::pair<std::string, std::string>>& indexed) const {
  for (const auto& [name, file] : indexed) {
    const StoredTensor* found = find(name);
    if (found == nullptr || fs::path(file_of(*found)).filename() != file)
      throw UserError("{} puts tensor {} into {}, which does not hold it", path, name, file);
  }
}

const StoredTensor* HfWeightFiles::find(std::string_view name) const {
  const auto found = std::ranges::lower_bound(
      tensors_, name, {}, [](const StoredTensor& tensor) { return std::string_view(tensor.spec().name); });
  return found == tensors_.end() || found->spec().name != name ? nullptr : &*found;
}

void HfWeightFiles::read(const StoredTensor& tensor, int64_t first, std::span<std::byte> into) const {
  files_[tensor.file]->read(tensor.entry, into, first);
}

FileMapping HfWeightFiles::map(const StoredTensor& tensor, int64_t first, int64_t bytes) const {
  return files_[tensor.file]->map(tensor.entry, first, bytes);
}

bool HfWeightFiles::same_bytes(const StoredTensor& a, const StoredTensor& b) const {
  if (a.spec().dtype != b.spec().dtype || a.spec().shape != b.spec().shape) return false;
  for (int64_t first = 0; first < a.spec().bytes(); first += kMapped) {
    const int64_t bytes = std::min(kMapped, a.spec().bytes() - first);
    const FileMapping left = map(a, first, bytes), right = map(b, first, bytes);
    if (std::memcmp(left.bytes().data(), right.bytes().data(), static_cast<size_t>(bytes)) != 0) return false;
  }
  return true;
}

std::vector<WeightPiece> pieces_of(std::vector<const StoredTensor*> tensors) {
  std::ranges::sort(tensors, {},
                    [](const StoredTensor* tensor) -> const std::string& { return tensor->spec().name; });
  std::vector<WeightPiece> pieces;
  for (const StoredTensor* tensor : tensors)
    for (int64_t first = 0; first < tensor->spec().bytes(); first += kWeightPiece)
      pieces.push_back({tensor, first, std::min(kWeightPiece, tensor->spec().bytes() - first)});
  return pieces;
}

std::string hash_of_weights(const std::vector<WeightPiece>& pieces, const std::vector<std::string>& hashes) {
  Sha256 whole;
  for (size_t i = 0; i < pieces.size(); ++i) {
    const TensorSpec& tensor = pieces[i].tensor->spec();
    if (pieces[i].first == 0)
      whole.update(fmt::format("{} {} {}\n", tensor.name, name_of(tensor.dtype), to_string(tensor.shape)));
    whole.update(hashes[i]);
  }
  return whole.finish();
}

std::string hash_of_tensors(const HfWeightFiles& files, std::vector<const StoredTensor*> tensors,
                            ThreadPool& pool) {
  const std::vector<WeightPiece> pieces = pieces_of(std::move(tensors));
  std::vector<std::string> hashes(pieces.size());
  std::vector<std::vector<std::byte>> read(static_cast<size_t>(pool.threads()));
  pool.run_indexed(static_cast<int64_t>(pieces.size()), [&](int64_t task, int thread) {
    const WeightPiece& piece = pieces[static_cast<size_t>(task)];
    std::vector<std::byte>& bytes = read[static_cast<size_t>(thread)];
    bytes.resize(static_cast<size_t>(piece.bytes));
    files.read(*piece.tensor, piece.first, bytes);
    Sha256 hash;
    hash.update(bytes);
    hashes[static_cast<size_t>(task)] = hash.finish();
  });
  return hash_of_weights(pieces, hashes);
}

std::vector<std::pair<std::string, std::string>> hf_companions(const std::string& folder) {
  std::vector<std::pair<std::string, std::string>> files;
  for (const std::string_view name : kCompanions)
    if (is_there(in_folder(folder, name)))
      files.emplace_back(name, read_file(file_inside(folder, name), kLongestCompanion));
  return files;
}

}  // namespace lockstep
