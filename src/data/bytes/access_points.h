// AccessPoints: where the decompression of a file can begin, so that what lies in its middle is reached
// without decompressing all before it. Found in one pass over the file, which also checks its checksums, and
// then kept beside the data like an index.
//
// gzip: about every MiB of content between two deflate blocks, with the 32 kB of content before it, and at
// members. zstd: at frames; a file of a single frame has one point.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/bytes/byte_source.h"

namespace lockstep {

enum class Compression : uint8_t { kNone, kGzip, kZstd };
std::string_view name_of(Compression compression);

struct AccessPoint {
  int64_t out = 0;           // the content's byte that comes next
  int64_t in = 0;            // the file's first byte that has to be read
  int64_t window = 0;        // where its window lies in the store, compressed
  int64_t window_bytes = 0;  // 0: a member or a frame begins here
  int64_t bits = 0;          // of the byte before `in` that belong to what follows
};

class AccessPoints {
 public:
  int64_t size = 0;                 // of the content
  std::vector<AccessPoint> points;  // by offset; the first is at 0
  std::unique_ptr<ByteSource> store;

  // The last one at or before this byte of the content.
  size_t before(int64_t offset) const;
};

// From a sidecar, or found and then kept there. Throws UserError with the offset in the file for what is
// damaged or cut.
AccessPoints access_points(const ByteSource& file, Compression compression, const IndexFolder& folder);

// What a sidecar holds, which begins with `valid`; nothing where it is not one for a file of that size.
std::optional<AccessPoints> read_access_points(std::unique_ptr<ByteSource> sidecar, std::string_view valid,
                                               int64_t file_bytes);

// How they are found: appends to `windows` what points refer to.
AccessPoints find_gzip_points(const ByteSource& file, std::string& windows);
AccessPoints find_zstd_points(const ByteSource& file);

// Decompressor: the content of a compressed file from an access point on, in order.
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
