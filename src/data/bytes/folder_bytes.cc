#include "data/bytes/folder_bytes.h"

#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "base/sha256.h"
#include "data/bytes/files.h"

namespace lockstep {
namespace {

constexpr std::string_view kMagic = "LOCKDIR\n";
constexpr int64_t kHead = 24;
constexpr int64_t kEntry = 16;

void put(std::string& out, int64_t value) { out.append(reinterpret_cast<const char*>(&value), 8); }

struct Stated {
  int64_t bytes = 0;
  std::string stamp;
};

Stated state_of(const std::string& path) {
  struct stat found {};
  if (stat(path.c_str(), &found) != 0) throw UserError("{}: {}", path, std::strerror(errno));
  return {found.st_size, stamp_of(found)};
}

// What must not change while a run reads: rights and further names of a file may.
std::string_view of_content(std::string_view stamp) { return stamp.substr(0, stamp.rfind(' ')); }

// The name of a file below the folder. Paths of files under it begin with the folder's as it is given.
std::string name_below(const std::string& folder, const std::string& file) {
  const size_t begin = file.find_first_not_of('/', folder.size());
  return begin == std::string::npos ? file : file.substr(begin);
}

bool ends_in(std::string_view name, const std::vector<std::string>& suffixes) {
  std::string lower(name);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return std::any_of(suffixes.begin(), suffixes.end(),
                     [&](const std::string& suffix) { return lower.ends_with(suffix); });
}

class FolderBytes : public ByteSource {
 public:
  FolderBytes(const std::string& path, const std::vector<std::string>& suffixes) : ByteSource(path) {
    std::string stamps, names, list(kMagic);
    for (const std::string& file : files_under(path)) {
      if (!ends_in(file, suffixes)) continue;
      const Stated stated = state_of(file);
      files_.push_back({name_below(path, file), 0, stated.bytes});
      names += files_.back().name;
      stamps += fmt::format("{} {}\n", files_.back().name, stated.stamp);
      stamps_.push_back(stated.stamp);
    }
    if (files_.empty()) throw UserError("{}: no file ends in {}", path, fmt::join(suffixes, ", "));
    put(list, static_cast<int64_t>(files_.size()));
    put(list, static_cast<int64_t>(names.size()));
    int64_t name_end = 0;
    size_ = kHead + kEntry * static_cast<int64_t>(files_.size()) + static_cast<int64_t>(names.size());
    for (FolderFile& file : files_) {
      put(list, file.bytes);
      put(list, name_end += static_cast<int64_t>(file.name.size()));
      file.offset = size_;
      size_ += file.bytes;
    }
    list_ = list + names;
    stamp_ = fmt::format("{} files {}", files_.size(), sha256(stamps));
  }

  int64_t size() const override { return size_; }
  std::string stamp() const override { return stamp_; }

  void read(int64_t offset, std::span<char> out) const override {
    LOCKSTEP_CHECK(offset >= 0 && offset + static_cast<int64_t>(out.size()) <= size_, "bytes from {} of {}",
                   offset, name());
    const auto listed = static_cast<int64_t>(list_.size());
    if (offset < listed) {
      const auto count = std::min<size_t>(out.size(), static_cast<size_t>(listed - offset));
      std::memcpy(out.data(), list_.data() + offset, count);
      out = out.subspan(count);
      offset = listed;
    }
    for (size_t i = file_at(offset); !out.empty(); ++i) {
      const int64_t within = offset - files_[i].offset;
      const auto count = std::min<size_t>(out.size(), static_cast<size_t>(files_[i].bytes - within));
      if (count > 0) read_file_part(i, within, out.first(count));
      out = out.subspan(count);
      offset += static_cast<int64_t>(count);
    }
  }

 private:
  // The last file that begins at or before the offset: empty files share theirs with the next.
  size_t file_at(int64_t offset) const {
    const auto after =
        std::upper_bound(files_.begin(), files_.end(), offset,
                         [](int64_t value, const FolderFile& file) { return value < file.offset; });
    return after == files_.begin() ? 0 : static_cast<size_t>(after - files_.begin()) - 1;
  }

  void read_file_part(size_t i, int64_t offset, std::span<char> out) const {
    const std::string path = (std::filesystem::path(name()) / files_[i].name).string();
    const auto file = open_file(path);
    if (of_content(file->stamp()) != of_content(stamps_[i]))
      throw UserError(
          "{} at byte {}: the file has changed since the folder was opened; keep data still while a run "
          "reads "
          "it, and start again",
          path, offset);
    file->read(offset, out);
  }

  std::vector<FolderFile> files_;
  std::vector<std::string> stamps_;  // of each file
  std::string list_, stamp_;
  int64_t size_ = 0;
};

int64_t number_at(const ByteSource& bytes, int64_t offset) {
  char raw[8];
  bytes.read(offset, raw);
  int64_t value = 0;
  std::memcpy(&value, raw, 8);
  return value;
}

}  // namespace

std::unique_ptr<ByteSource> open_folder(const std::string& path, const std::vector<std::string>& suffixes) {
  return std::make_unique<FolderBytes>(path, suffixes);
}

std::vector<FolderFile> folder_files(const ByteSource& bytes) {
  std::string magic(kMagic.size(), '\0');
  if (bytes.size() >= kHead) bytes.read(0, magic);
  if (magic != kMagic) throw UserError("{} is not a folder of files", bytes.name());
  const int64_t count = number_at(bytes, 8), names = number_at(bytes, 16);
  if (count < 0 || names < 0 || count > (bytes.size() - kHead) / kEntry ||
      names > bytes.size() - kHead - count * kEntry)
    throw UserError("{}: the list of {} files does not fit its {} bytes", bytes.name(), count, bytes.size());
  std::string entries(static_cast<size_t>(count * kEntry), '\0'), text(static_cast<size_t>(names), '\0');
  bytes.read(kHead, entries);
  bytes.read(kHead + count * kEntry, text);
  std::vector<FolderFile> files;
  int64_t offset = kHead + count * kEntry + names, name_begin = 0;
  for (int64_t i = 0; i < count; ++i) {
    int64_t size = 0, name_end = 0;
    std::memcpy(&size, entries.data() + i * kEntry, 8);
    std::memcpy(&name_end, entries.data() + i * kEntry + 8, 8);
    if (size < 0 || size > bytes.size() - offset || name_end < name_begin || name_end > names)
      throw UserError("{} at byte {}: file {} of {} does not fit the list", bytes.name(), kHead + i * kEntry,
                      i, count);
    files.push_back({text.substr(static_cast<size_t>(name_begin), static_cast<size_t>(name_end - name_begin)),
                     offset, size});
    offset += size;
    name_begin = name_end;
  }
  return files;
}

}  // namespace lockstep
