// SnappyExtents: where the bytes that a snappy stream unpacks to lie in it. Numbers that hardly repeat are
// stored in literals of up to 64 KiB with few copies between them: single ones can then be read without
// unpacking the others.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace lockstep::parquet {

class SnappyExtents {
 public:
  // Follows the stream's tags. False: it does not unpack to so many bytes, or has more tags than are kept.
  // Neither throws nor owns anything, as the other functions.
  bool find(std::string_view stream, size_t unpacked);
  // For bytes that lie in the stream as they are.
  void set_whole(size_t unpacked) {
    extents_[0] = {0, 0, 0};
    count_ = 1;
    unpacked_ = unpacked;
  }

  size_t unpacked() const { return unpacked_; }
  // Bytes [at, at + count) of those that the stream it was found in unpacks to; they must be among them.
  void read(const char* stream, size_t at, size_t count, char* out) const;

 private:
  static constexpr size_t kMost = 64;
  struct Extent {
    uint32_t first;  // of the bytes it unpacks to
    uint32_t at;     // in the stream
    uint32_t back;   // 0: a literal; otherwise a copy of what comes so many bytes before
  };

  const Extent& of(size_t at) const;
  size_t end_of(const Extent& extent) const {
    return &extent + 1 == extents_.data() + count_ ? unpacked_ : (&extent)[1].first;
  }
  bool add(size_t done, size_t at, size_t back, size_t length);

  std::array<Extent, kMost> extents_;  // in their order
  size_t count_ = 0;
  size_t unpacked_ = 0;
};

}  // namespace lockstep::parquet
