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
#include <string>
#include <string_view>
#include <vector>

#include "data/format/byte_source.h"

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
AccessPoints access_points(const ByteSource& file, Compression compression, const std::string& folder);

// What a sidecar holds, which begins with `valid`; nothing where it is not one for a file of that size.
std::optional<AccessPoints> read_access_points(std::unique_ptr<ByteSource> sidecar, std::string_view valid,
                                               int64_t file_bytes);

// How they are found: appends to `windows` what points refer to.
AccessPoints find_gzip_points(const ByteSource& file, std::string& windows);
AccessPoints find_zstd_points(const ByteSource& file);

}  // namespace lockstep
