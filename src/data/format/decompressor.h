// Decompressor: the content of a compressed file from an access point on, in order.
#pragma once
#include <cstdint>
#include <memory>
#include <span>

#include "data/format/access_points.h"
#include "data/format/byte_source.h"

namespace lockstep {

class Decompressor {
 public:
  virtual ~Decompressor() = default;

  int64_t position() const { return position_; }  // of the content
  // The next bytes. Throws UserError that names the file and the offset in it.
  void read(std::span<char> out) {
    produce(out);
    position_ += static_cast<int64_t>(out.size());
  }
  void skip_to(int64_t position);

 protected:
  explicit Decompressor(int64_t position) : position_(position) {}
  virtual void produce(std::span<char> out) = 0;

 private:
  int64_t position_;
};

std::unique_ptr<Decompressor> open_gzip(const ByteSource& file, const AccessPoints& points, size_t point);
std::unique_ptr<Decompressor> open_zstd(const ByteSource& file, const AccessPoints& points, size_t point);

// A compressed file read piece by piece.
class CompressedInput {
 public:
  CompressedInput(const ByteSource& file, int64_t offset) : file_(file), offset_(offset) {}

  // The next piece; empty at the end of the file.
  std::span<const char> next();
  int64_t offset() const { return offset_; }  // behind the last piece
  const ByteSource& file() const { return file_; }

 private:
  static constexpr int64_t kPiece = 64 << 10;

  const ByteSource& file_;
  int64_t offset_;
  std::string buffer_;
};

}  // namespace lockstep
