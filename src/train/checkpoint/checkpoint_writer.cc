#include "train/checkpoint/checkpoint_writer.h"

#include <algorithm>
#include <cerrno>
#include <deque>
#include <filesystem>
#include <map>

#include "base/durable_file.h"
#include "base/error.h"
#include "base/file_reader.h"
#include "base/log.h"
#include "base/sha256.h"
#include "safetensors/fold.h"
#include "safetensors/writer.h"
#include "train/checkpoint/manifest.h"

namespace lockstep {
namespace {

class TemporaryFolder {
 public:
  explicit TemporaryFolder(std::string path) : path_(std::move(path)) {
    std::error_code failure;
    std::filesystem::remove_all(path_, failure);
    if (!failure) std::filesystem::create_directory(path_, failure);
    if (failure) throw_file_error("create", path_, failure.value());
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

void write_tensors(SafetensorsWriter& writer, const TensorFeed& feed) {
  for (const TensorEntry& entry : writer.tensors())
    feed(entry.tensor, [&](std::span<const std::byte> bytes) { writer.append(bytes); });
}

// Hashes a file that others have filled in, as SafetensorsWriter hashes what it writes: a piece at a time,
// small enough that it is still in a cache for the next one who looks at it.
class FilledFile {
 public:
  FilledFile(const std::string& path, size_t number, TensorFiller& filler)
      : reader_(path), number_(number), filler_(filler) {}

  FileRecord record(const std::string& name, const SafetensorsHeader& header) {
    FileRecord record{name, header.file_bytes(), "", {}};
    if (reader_.bytes() != record.bytes)
      throw UserError("{} has {} bytes, not {}; another program changes it", reader_.path(), reader_.bytes(),
                      record.bytes);
    hash(0, header.data_begin, [](int64_t, std::span<const std::byte>) {});
    for (size_t i = 0; i < header.tensors.size(); ++i) {
      const TensorEntry& entry = header.tensors[i];
      Fold fold;
      hash(entry.begin, entry.end, [&](int64_t first, std::span<const std::byte> bytes) {
        fold.update(bytes);
        filler_.check(number_, i, first, bytes);
      });
      record.tensors.push_back({entry.tensor.name, entry.begin, entry.end, fold.value()});
    }
    filler_.check_end(number_, reader_.path());
    record.sha256 = hash_.finish();
    return record;
  }

 private:
  template <typename Visit>
  void hash(int64_t begin, int64_t end, const Visit& visit) {
    for (int64_t at = begin; at < end; at += static_cast<int64_t>(piece_.size())) {
      const auto bytes = std::span(piece_).first(
          static_cast<size_t>(std::min(end - at, static_cast<int64_t>(piece_.size()))));
      reader_.read(at, bytes);
      hash_.update(bytes);
      visit(at - begin, bytes);
    }
  }

  FileReader reader_;
  size_t number_;
  TensorFiller& filler_;
  Sha256 hash_;
  std::vector<std::byte> piece_ = std::vector<std::byte>(size_t{1} << 18);
};

std::vector<FileRecord> feed_files(const std::string& folder, const CheckpointContent& content,
                                   const std::function<void()>& tensors_read) {
  std::deque<SafetensorsWriter> open;
  for (const TensorFile& file : content.tensors)
    write_tensors(open.emplace_back(folder, file.name, file.tensors, file.metadata), file.feed);
  if (tensors_read) tensors_read();
  std::vector<FileRecord> records;
  for (SafetensorsWriter& file : open) records.push_back(file.finish());
  return records;
}

std::vector<FileRecord> have_files_filled(const std::string& folder, const CheckpointContent& content,
                                          const std::function<void()>& tensors_read) {
  std::deque<FileFrame> frames;
  std::vector<SafetensorsHeader> headers;
  for (const TensorFile& file : content.tensors) {
    headers.push_back(plan_safetensors(file.tensors, file.metadata));
    frames.emplace_back(folder + "/" + file.name, safetensors_header_bytes(headers.back()),
                        headers.back().file_bytes());
  }
  // Who opens the files on another host has to find them.
  sync_folder(folder);
  content.filler->fill(folder);
  if (tensors_read) tensors_read();
  std::vector<FileRecord> records;
  for (size_t i = 0; i < frames.size(); ++i) {
    frames[i].sync();
    records.push_back(
        FilledFile(frames[i].path(), i, *content.filler).record(content.tensors[i].name, headers[i]));
  }
  return records;
}

FileRecord write_text(const std::string& folder, const std::string& name, const std::string& text) {
  DurableFile file(folder + "/" + name);
  file.write(text);
  return {name, file.bytes(), file.finish(), {}};
}

std::string state_text(const CheckpointContent& content) {
  const nlohmann::ordered_json state = {{"step", content.step},
                                        {"identity_sha256", content.identity.sha256()},
                                        {"identity", to_json(content.identity)},
                                        {"state", content.state}};
  return state.dump(1) + "\n";
}

}  // namespace

TensorFile tensor_file(std::string name, const std::vector<NamedTensor>& tensors) {
  TensorFile file{std::move(name), {}, {}};
  std::map<std::string, std::span<const std::byte>> bytes;
  for (const NamedTensor& tensor : tensors) {
    file.tensors.push_back({tensor.name, tensor.dtype, tensor.shape});
    LOCKSTEP_CHECK(static_cast<int64_t>(tensor.bytes.size()) == file.tensors.back().bytes(),
                   "tensor {} has {} bytes, not {}", tensor.name, tensor.bytes.size(),
                   file.tensors.back().bytes());
    bytes.emplace(tensor.name, tensor.bytes);
  }
  file.feed = [bytes = std::move(bytes)](const TensorSpec& tensor, const ByteSink& sink) {
    sink(bytes.at(tensor.name));
  };
  return file;
}

CheckpointWriter::CheckpointWriter(std::string run_dir, int64_t keep)
    : run_dir_(std::move(run_dir)), keep_(keep), lock_(run_dir_) {
  remove_temporary_folders(run_dir_);
}

void CheckpointWriter::write_files(const std::string& folder, const CheckpointContent& content,
                                   const std::function<void()>& tensors_read) const {
  std::vector<FileRecord> files = content.filler ? have_files_filled(folder, content, tensors_read)
                                                 : feed_files(folder, content, tensors_read);
  for (const auto& [name, text] : content.texts) files.push_back(write_text(folder, name, text));
  files.push_back(write_text(folder, kStateFile, state_text(content)));
  write_manifest(folder, content.step, files);
  sync_folder(folder);
}

CheckpointInfo CheckpointWriter::write(const CheckpointContent& content,
                                       const std::function<void()>& tensors_read) {
  CheckpointInfo written{content.step, checkpoint_path(run_dir_, content.step), content.best};
  const TemporaryFolder folder(temporary_name(written.path));
  try {
    write_files(folder.path(), content, tensors_read);
    rename_durably(folder.path(), written.path);
    if (content.best) mark_best_checkpoint(run_dir_, content.step);
  } catch (const UserError& error) {
    const auto last = latest_checkpoint(run_dir_);
    throw UserError(
        "checkpoint {} was not saved: {} ({})", content.step, error.what(),
        last ? fmt::format("the last complete one is {}", last->path) : "there is none before it");
  }
  remove_old(content.also_keep);
  return written;
}

void CheckpointWriter::discard_after(int64_t step) {
  const std::optional<CheckpointInfo> best = best_checkpoint(run_dir_);
  if (!best || best->step > step) unmark_best_checkpoint(run_dir_);
  for (const CheckpointInfo& checkpoint : list_checkpoints(run_dir_))
    if (checkpoint.step > step) remove_checkpoint(checkpoint);
}

void CheckpointWriter::remove_old(const std::optional<int64_t>& also_keep) const {
  std::vector<CheckpointInfo> all = list_checkpoints(run_dir_);
  const auto count = static_cast<int64_t>(all.size());
  for (int64_t i = 0; keep_ > 0 && i < count - keep_; ++i) {
    const CheckpointInfo& old = all[static_cast<size_t>(i)];
    if (old.best || old.step == also_keep) continue;
    try {
      remove_checkpoint(old);
    } catch (const UserError& error) {
      // The new one is safe; an old one too many is no reason to stop a run.
      log_warn("{}", error.what());
    }
  }
}

}  // namespace lockstep
