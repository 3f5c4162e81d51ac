#include "data/bytes/byte_source.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>

#include "base/error.h"
#include "data/bytes/kept_file.h"

namespace lockstep {
namespace {

// Every shard stays open, and a data set may have more of them than a process may open unless it asks.
void allow_more_files() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

class Descriptor {
 public:
  explicit Descriptor(const std::string& path) : value_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (value_ < 0 && errno == EMFILE) {
      allow_more_files();
      value_ = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    }
    if (value_ < 0) throw UserError("{}: cannot open: {}", path, std::strerror(errno));
  }
  ~Descriptor() { close(value_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int value() const { return value_; }

 private:
  int value_;
};

// A whole file in memory, for as long as this lives.
class Mapping {
 public:
  Mapping() = default;
  ~Mapping() {
    if (data_ != nullptr) munmap(data_, bytes_);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  // Null where the system has no room for it, or files of this kind cannot be mapped.
  const std::byte* of(const Descriptor& file, int64_t bytes) {
    std::call_once(tried_, [&] {
      void* const data = mmap(nullptr, static_cast<size_t>(bytes), PROT_READ, MAP_SHARED, file.value(), 0);
      if (data == MAP_FAILED) return;
      bytes_ = static_cast<size_t>(bytes);
      data_ = data;
    });
    return static_cast<const std::byte*>(data_.load());
  }
  // Pages of a file that are not mapped any more are mapped again when they are touched.
  void forget() {
    if (data_ != nullptr) madvise(data_, bytes_, MADV_DONTNEED);
  }

 private:
  std::once_flag tried_;
  std::atomic<void*> data_ = nullptr;
  size_t bytes_ = 0;
};

class FileBytes : public ByteSource {
 public:
  explicit FileBytes(const std::string& path) : ByteSource(path), file_(path), opened_(status()) {
    if (!S_ISREG(opened_.st_mode)) throw UserError("{} is not a regular file", path);
  }

  int64_t size() const override { return opened_.st_size; }

  void read(int64_t offset, std::span<char> out) const override {
    size_t done = 0;
    while (done < out.size()) {
      const ssize_t got =
          pread(file_.value(), out.data() + done, out.size() - done, offset + static_cast<int64_t>(done));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0)
        throw UserError("{} at byte {}: cannot read: {}", name(), offset + static_cast<int64_t>(done),
                        std::strerror(errno));
      if (got == 0)
        throw UserError(
            "{}: ends at byte {}, but had {} bytes when the run began; it was cut while it was read", name(),
            status().st_size, size());
      done += static_cast<size_t>(got);
    }
    check_unchanged(offset);
  }

  bool mappable() const override { return size() > 0 && mapping_.of(file_, size()) != nullptr; }

  Mapped mapped(int64_t offset, int64_t bytes) const override {
    if (bytes <= 0 || offset < 0 || bytes > size() - offset) return {};
    const std::byte* const all = mapping_.of(file_, size());
    if (all == nullptr) return {};
    return {all + offset, this, offset};
  }

  // The offsets of the index are those of the file as it was opened.
  void check_unchanged(int64_t offset) const override {
    const struct stat now = status();
    if (now.st_size == opened_.st_size && now.st_mtim.tv_sec == opened_.st_mtim.tv_sec &&
        now.st_mtim.tv_nsec == opened_.st_mtim.tv_nsec)
      return;
    throw UserError(
        "{} at byte {}: the file has changed since it was opened; keep data still while a run "
        "reads it, and start again",
        name(), offset);
  }

  std::string stamp() const override { return stamp_of(status()); }

  std::string sample() const override {
    ContentHash hash;
    std::string piece;
    const auto add = [&](int64_t offset, int64_t bytes) {
      piece.resize(static_cast<size_t>(bytes));
      read(offset, piece);
      hash.update(piece);
    };
    if (size() <= kPieces * kPiece)
      add(0, size());
    else
      for (int64_t i = 0; i < kPieces; ++i) add(i * (size() - kPiece) / (kPieces - 1), kPiece);
    return hash.finish();
  }

 private:
  struct stat status() const {
    struct stat found {};
    if (fstat(file_.value(), &found) != 0) throw UserError("{}: {}", name(), std::strerror(errno));
    return found;
  }

  // A start with all indexes in place reads this much of each shard.
  static constexpr int64_t kPieces = 8, kPiece = 4 << 10;

  Descriptor file_;
  struct stat opened_;
  mutable Mapping mapping_;
};

class TextBytes : public ByteSource {
 public:
  TextBytes(std::string name, std::shared_ptr<const std::string> text)
      : ByteSource(std::move(name)), text_(std::move(text)) {}

  int64_t size() const override { return static_cast<int64_t>(text_->size()); }
  void read(int64_t offset, std::span<char> out) const override {
    LOCKSTEP_CHECK(offset >= 0 && offset + static_cast<int64_t>(out.size()) <= size(), "bytes from {} of {}",
                   offset, name());
    std::copy_n(text_->data() + offset, out.size(), out.data());
  }
  Mapped mapped(int64_t offset, int64_t bytes) const override {
    if (bytes <= 0 || offset < 0 || bytes > size() - offset) return {};
    return {reinterpret_cast<const std::byte*>(text_->data()) + offset, this, offset};
  }
  std::string stamp() const override { return fmt::format("{} text", text_->size()); }

 private:
  std::shared_ptr<const std::string> text_;
};

}  // namespace

ByteSource::Mapped ByteSource::mapped(int64_t, int64_t) const { return {}; }

void ByteSource::check_unchanged(int64_t) const {}

std::string ByteSource::place(int64_t offset) const { return fmt::format("{} at byte {}", name_, offset); }

std::string stamp_of(const struct stat& status) {
  return fmt::format("{} {}.{:09} {} {}.{:09}", status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec,
                     status.st_ino, status.st_ctim.tv_sec, status.st_ctim.tv_nsec);
}

std::unique_ptr<ByteSource> open_file(const std::string& path) { return std::make_unique<FileBytes>(path); }

std::unique_ptr<ByteSource> open_text(std::string name, std::string text) {
  return open_text(std::move(name), std::make_shared<const std::string>(std::move(text)));
}
std::unique_ptr<ByteSource> open_text(std::string name, std::shared_ptr<const std::string> text) {
  return std::make_unique<TextBytes>(std::move(name), std::move(text));
}

namespace {

class JoinedBytes : public ByteSource {
 public:
  JoinedBytes(std::string name, std::vector<std::unique_ptr<ByteSource>> parts)
      : ByteSource(std::move(name)), parts_(std::move(parts)), begins_{0} {
    for (const auto& part : parts_) begins_.push_back(begins_.back() + part->size());
  }

  int64_t size() const override { return begins_.back(); }

  void read(int64_t offset, std::span<char> out) const override {
    LOCKSTEP_CHECK(offset >= 0 && offset + static_cast<int64_t>(out.size()) <= size(), "bytes from {} of {}",
                   offset, name());
    for_each_part(offset, static_cast<int64_t>(out.size()), [&](size_t part, int64_t from, int64_t bytes) {
      parts_[part]->read(from, out.first(static_cast<size_t>(bytes)));
      out = out.subspan(static_cast<size_t>(bytes));
    });
  }

  bool mappable() const override {
    return std::all_of(parts_.begin(), parts_.end(),
                       [](const auto& part) { return part->size() == 0 || part->mappable(); });
  }

  Mapped mapped(int64_t offset, int64_t bytes) const override {
    const size_t part = part_at(offset);
    if (offset + bytes > begins_[part + 1]) return {};
    return parts_[part]->mapped(offset - begins_[part], bytes);
  }

  void check_unchanged(int64_t offset) const override {
    for (size_t i = 0; i < parts_.size(); ++i)
      parts_[i]->check_unchanged(std::max<int64_t>(offset - begins_[i], 0));
  }

  std::string place(int64_t offset) const override {
    const size_t part = part_at(offset);
    return parts_[part]->place(offset - begins_[part]);
  }

  std::string stamp() const override {
    std::string stamp;
    for (const auto& part : parts_) stamp += (stamp.empty() ? "" : ", ") + part->stamp();
    return stamp;
  }
  std::string sample() const override {
    std::string samples;
    for (const auto& part : parts_) samples += (samples.empty() ? "" : ", ") + part->sample();
    return samples;
  }

 private:
  // The part that holds this byte; the last, where it is the end.
  size_t part_at(int64_t offset) const {
    const auto after = std::upper_bound(begins_.begin(), begins_.end() - 1, offset);
    return static_cast<size_t>(after - begins_.begin()) - 1;
  }

  template <typename Part>
  void for_each_part(int64_t offset, int64_t bytes, const Part& part) const {
    for (size_t i = part_at(offset); i < parts_.size() && bytes > 0; ++i) {
      const int64_t here = std::min(bytes, begins_[i + 1] - offset);
      part(i, offset - begins_[i], here);
      offset += here;
      bytes -= here;
    }
  }

  std::vector<std::unique_ptr<ByteSource>> parts_;
  std::vector<int64_t> begins_;  // of each part, and the end of the last
};

}  // namespace

std::unique_ptr<ByteSource> join_bytes(std::string name, std::vector<std::unique_ptr<ByteSource>> parts) {
  return std::make_unique<JoinedBytes>(std::move(name), std::move(parts));
}

}  // namespace lockstep
