#include <algorithm>
#include <list>
#include <mutex>

#include "base/error.h"
#include "data/bytes/access_points.h"
#include "data/bytes/byte_source.h"
#include "data/bytes/tfrecord_frame.h"

namespace lockstep {
namespace {

constexpr std::string_view kGzipMagic = "\x1f\x8b\x08";
constexpr std::string_view kZstdMagic = "\x28\xb5\x2f\xfd";

Compression compression_of(const ByteSource& file) {
  char bytes[kTfrecordHeader] = {};
  const auto length = static_cast<size_t>(std::min<int64_t>(sizeof bytes, file.size()));
  file.read(0, std::span(bytes).first(length));
  const std::string_view begin(bytes, length);
  // The length of a record can look like either, but not with its crc.
  if (length == sizeof bytes && tfrecord_length(bytes) >= 0) return Compression::kNone;
  if (begin.starts_with(kGzipMagic)) return Compression::kGzip;
  if (begin.starts_with(kZstdMagic)) return Compression::kZstd;
  return Compression::kNone;
}

class CompressedBytes : public ByteSource {
 public:
  CompressedBytes(std::unique_ptr<ByteSource> file, Compression compression, const IndexFolder& folder)
      : ByteSource(file->name()),
        file_(std::move(file)),
        compression_(compression),
        points_(access_points(*file_, compression, folder)) {}

  int64_t size() const override { return points_.size; }
  std::string stamp() const override {
    return fmt::format("{} {} of {}", points_.size, name_of(compression_), file_->stamp());
  }
  std::string sample() const override { return file_->sample(); }

  void read(int64_t offset, std::span<char> out) const override {
    LOCKSTEP_CHECK(offset >= 0 && offset + static_cast<int64_t>(out.size()) <= size(), "bytes from {} of {}",
                   offset, name());
    if (out.empty()) return;
    std::unique_ptr<Decompressor> reader = take(offset);
    reader->skip_to(offset);
    reader->read(out);
    const std::lock_guard lock(mutex_);
    waiting_.push_front(std::move(reader));
    if (waiting_.size() > kMostWaiting) waiting_.pop_back();
  }

 private:
  static constexpr size_t kMostWaiting = 8;

  // One that stands between the nearest access point and the offset, or a new one at that point.
  std::unique_ptr<Decompressor> take(int64_t offset) const {
    const size_t point = points_.before(offset);
    {
      const std::lock_guard lock(mutex_);
      auto best = waiting_.end();
      for (auto at = waiting_.begin(); at != waiting_.end(); ++at)
        if ((*at)->position() <= offset && (*at)->position() >= points_.points[point].out &&
            (best == waiting_.end() || (*at)->position() > (*best)->position()))
          best = at;
      if (best != waiting_.end()) {
        std::unique_ptr<Decompressor> reader = std::move(*best);
        waiting_.erase(best);
        return reader;
      }
    }
    return compression_ == Compression::kGzip ? open_gzip(*file_, points_, point)
                                              : open_zstd(*file_, points_, point);
  }

  std::unique_ptr<ByteSource> file_;
  Compression compression_;
  AccessPoints points_;
  mutable std::mutex mutex_;
  mutable std::list<std::unique_ptr<Decompressor>> waiting_;  // the last used first
};

}  // namespace

void Decompressor::skip_to(int64_t position) {
  thread_local std::string passed;
  constexpr int64_t kPiece = 64 << 10;
  while (position_ < position) {
    passed.resize(static_cast<size_t>(std::min(kPiece, position - position_)));
    read(passed);
  }
}

std::span<const char> CompressedInput::next() {
  buffer_.resize(static_cast<size_t>(std::min(kPiece, file_.size() - offset_)));
  file_.read(offset_, buffer_);
  offset_ += static_cast<int64_t>(buffer_.size());
  return buffer_;
}

std::unique_ptr<ByteSource> decompressed(std::unique_ptr<ByteSource> file, const IndexFolder& folder) {
  const Compression compression = compression_of(*file);
  if (compression == Compression::kNone) return file;
  return std::make_unique<CompressedBytes>(std::move(file), compression, folder);
}

std::unique_ptr<ByteSource> open_shard(const std::string& path, const IndexFolder& folder) {
  return decompressed(open_file(path), folder);
}

std::string_view without_compression(std::string_view path) {
  for (const std::string_view suffix : {".gz", ".zst"})
    if (path.ends_with(suffix)) return path.substr(0, path.size() - suffix.size());
  return path;
}

}  // namespace lockstep
