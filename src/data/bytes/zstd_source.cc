// zstd through libzstd: files of one or many frames, entered at frames.
#include <zstd.h>

#include "base/error.h"
#include "base/log.h"
#include "data/bytes/access_points.h"

namespace lockstep {
namespace {

// Frames closer than this are not worth a point each.
constexpr int64_t kLeastDistance = 64 << 10;
constexpr int64_t kLongFrame = 16 << 20;

class Stream {
 public:
  Stream() : context_(ZSTD_createDCtx()) {
    if (context_ == nullptr) throw InternalError("zstd cannot be set up");
  }
  ~Stream() { ZSTD_freeDCtx(context_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // Gives 0 where a frame ends.
  size_t run(CompressedInput& input, ZSTD_outBuffer& out) {
    if (in_.pos == in_.size) {
      const auto piece = input.next();
      in_ = {piece.data(), piece.size(), 0};
    }
    const size_t result = ZSTD_decompressStream(context_, &out, &in_);
    if (ZSTD_isError(result) != 0)
      throw UserError("{} at byte {}: the zstd data is damaged ({})", input.file().name(), offset(input),
                      ZSTD_getErrorName(result));
    return result;
  }
  int64_t offset(const CompressedInput& input) const {
    return input.offset() - static_cast<int64_t>(in_.size - in_.pos);
  }
  bool at_end(const CompressedInput& input) const { return offset(input) == input.file().size(); }

 private:
  ZSTD_DCtx* context_;
  ZSTD_inBuffer in_{nullptr, 0, 0};
};

[[noreturn]] void refuse_cut(const CompressedInput& input) {
  throw UserError(
      "{} at byte {}: the file ends in the middle of its zstd data; it was cut, or is still being "
      "written",
      input.file().name(), input.offset());
}

class ZstdDecompressor : public Decompressor {
 public:
  ZstdDecompressor(const ByteSource& file, const AccessPoint& point)
      : Decompressor(point.out), input_(file, point.in) {}

 protected:
  void produce(std::span<char> out) override {
    ZSTD_outBuffer buffer{out.data(), out.size(), 0};
    while (buffer.pos < buffer.size) {
      const size_t before = buffer.pos;
      const bool end = stream_.at_end(input_);
      stream_.run(input_, buffer);
      if (end && buffer.pos == before) refuse_cut(input_);
    }
  }

 private:
  CompressedInput input_;
  Stream stream_;
};

}  // namespace

std::unique_ptr<Decompressor> open_zstd(const ByteSource& file, const AccessPoints& points, size_t point) {
  return std::make_unique<ZstdDecompressor>(file, points.points[point]);
}

AccessPoints find_zstd_points(const ByteSource& file) {
  AccessPoints found;
  found.points.push_back({});
  CompressedInput input(file, 0);
  Stream stream;
  std::string content(256 << 10, '\0');
  int64_t longest = 0;
  while (true) {
    ZSTD_outBuffer buffer{content.data(), content.size(), 0};
    const bool end = stream.at_end(input);
    const size_t result = stream.run(input, buffer);
    found.size += static_cast<int64_t>(buffer.pos);
    longest = std::max(longest, found.size - found.points.back().out);
    if (result == 0) {
      if (stream.at_end(input)) break;
      if (found.size - found.points.back().out >= kLeastDistance)
        found.points.push_back({.out = found.size, .in = stream.offset(input)});
    } else if (end && buffer.pos == 0) {
      refuse_cut(input);
    }
  }
  if (longest > kLongFrame)
    log_warn(
        "{}: {} MB of content in one zstd frame; what lies in its middle is reached only by decompressing "
        "all "
        "before it, so read it without shuffling, or compress it in frames (pzstd)",
        file.name(), longest >> 20);
  return found;
}

}  // namespace lockstep
