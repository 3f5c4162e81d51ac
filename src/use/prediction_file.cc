#include "use/prediction_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "data/shards/formats.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

}  // namespace

PredictionFile::PredictionFile(std::string path, const std::vector<std::string>& inputs)
    : path_(std::move(path)) {
  if (path_ == kStandardOutput) {
    path_ = "standard output";
    return;
  }
  std::error_code failure;
  const fs::file_status status = fs::status(path_, failure);
  if (fs::is_directory(status)) throw UserError("{}: is a folder; name the file to write", path_);
  for (const std::string& input : inputs)
    if (fs::equivalent(input, path_, failure))
      throw UserError("{}: predictions would replace the records they are made of; name another file", path_);
  // A device or a pipe cannot be replaced by a complete file.
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    descriptor_ = open(path_.c_str(), O_WRONLY | O_CLOEXEC);
    if (descriptor_ < 0) throw UserError("cannot write {}: {}", path_, std::strerror(errno));
    return;
  }
  file_ = std::make_unique<PartialFile>(path_);
}

void PredictionFile::write(std::string_view bytes) {
  size_ += static_cast<int64_t>(bytes.size());
  if (file_) return file_->write(bytes);
  while (!bytes.empty()) {
    const ssize_t done = ::write(descriptor_, bytes.data(), bytes.size());
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) throw UserError("cannot write {}: {}", path_, std::strerror(errno));
    bytes.remove_prefix(static_cast<size_t>(done));
  }
}

void PredictionFile::finish() {
  if (file_) file_->finish();
}

std::string format_to_write(const std::string& path, const std::string& asked) {
  const std::vector<std::string_view> known = written_formats();
  if (!asked.empty()) {
    if (std::find(known.begin(), known.end(), asked) != known.end()) return asked;
    throw UserError("--out-format {}: predictions are written as {}", asked, fmt::join(known, ", "));
  }
  if (path == kStandardOutput) return "csv";
  const std::string ending = fs::path(path).extension().string();
  for (const std::string_view format : known)
    if (ending == fmt::format(".{}", format)) return std::string(format);
  throw UserError("--out {}: the ending does not say which format to write; use --out-format {}", path,
                  fmt::join(known, ", "));
}

}  // namespace lockstep
