// gzip through zlib: files of one or many members, entered at members and between deflate blocks.
#include <zlib.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "data/bytes/access_points.h"

namespace lockstep {
namespace {

constexpr int64_t kWindow = 32 << 10;
constexpr int64_t kTrailer = 8;  // of a member: crc and length
constexpr int kWithHeader = 15 + 16;
constexpr int kRaw = -15;
// A point takes about 10 kB on disk, and reaching a block from it half the distance in inflating.
constexpr int64_t kLeastDistance = int64_t{1} << 20;
constexpr int64_t kMostPoints = 16384;

class Inflate {
 public:
  explicit Inflate(int kind) {
    if (inflateInit2(&stream_, kind) != Z_OK) throw InternalError("zlib cannot be set up");
  }
  ~Inflate() { inflateEnd(&stream_); }
  Inflate(const Inflate&) = delete;
  Inflate& operator=(const Inflate&) = delete;

  z_stream* operator->() { return &stream_; }
  z_stream* get() { return &stream_; }

 private:
  z_stream stream_{};
};

[[noreturn]] void refuse(const CompressedInput& input, const z_stream& stream) {
  throw UserError("{} at byte {}: the gzip data is damaged ({})", input.file().name(),
                  input.offset() - stream.avail_in, stream.msg == nullptr ? "no message" : stream.msg);
}

[[noreturn]] void refuse_cut(const CompressedInput& input) {
  throw UserError(
      "{} at byte {}: the file ends in the middle of its gzip data; it was cut, or is still being "
      "written",
      input.file().name(), input.offset());
}

void refill(z_stream& stream, CompressedInput& input) {
  const auto piece = input.next();
  stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(piece.data()));  // zlib only reads it
  stream.avail_in = static_cast<uInt>(piece.size());
}

// Passes over zero bytes, which some tools pad with. Gives whether another member follows.
bool another_member(z_stream& stream, CompressedInput& input) {
  while (true) {
    while (stream.avail_in > 0 && *stream.next_in == 0) {
      ++stream.next_in;
      --stream.avail_in;
    }
    if (stream.avail_in > 0) return true;
    refill(stream, input);
    if (stream.avail_in == 0) return false;
  }
}

class GzipDecompressor : public Decompressor {
 public:
  GzipDecompressor(const ByteSource& file, const AccessPoints& points, const AccessPoint& point)
      : Decompressor(point.out),
        input_(file, point.in),
        raw_(point.window_bytes > 0),
        inflate_(raw_ ? kRaw : kWithHeader) {
    if (!raw_) return;
    if (point.bits > 0) {
      char before = 0;
      file.read(point.in - 1, {&before, 1});
      inflatePrime(inflate_.get(), static_cast<int>(point.bits),
                   static_cast<uint8_t>(before) >> (8 - point.bits));
    }
    std::string packed(static_cast<size_t>(point.window_bytes), '\0');
    points.store->read(point.window, packed);
    std::string window(static_cast<size_t>(kWindow), '\0');
    uLongf length = kWindow;
    if (uncompress(reinterpret_cast<Bytef*>(window.data()), &length,
                   reinterpret_cast<const Bytef*>(packed.data()), static_cast<uLong>(packed.size())) != Z_OK)
      throw UserError("{} is damaged; remove it, and it will be made again", points.store->name());
    inflateSetDictionary(inflate_.get(), reinterpret_cast<const Bytef*>(window.data()),
                         static_cast<uInt>(length));
  }

 protected:
  void produce(std::span<char> out) override {
    z_stream& stream = *inflate_.get();
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    while (stream.avail_out > 0) {
      if (stream.avail_in == 0) refill(stream, input_);
      if (stream.avail_in == 0) refuse_cut(input_);
      const int result = inflate(&stream, Z_NO_FLUSH);
      if (result == Z_STREAM_END)
        begin_member(stream);
      else if (result != Z_OK)
        refuse(input_, stream);
    }
  }

 private:
  void begin_member(z_stream& stream) {
    if (stream.avail_out == 0 && !raw_) return;
    // Without the header zlib leaves the trailer to us. It was checked when the points were found.
    for (int64_t left = raw_ ? kTrailer : 0; left > 0;) {
      if (stream.avail_in == 0) refill(stream, input_);
      if (stream.avail_in == 0) refuse_cut(input_);
      const auto taken = static_cast<uInt>(std::min<int64_t>(left, stream.avail_in));
      stream.next_in += taken;
      stream.avail_in -= taken;
      left -= taken;
    }
    raw_ = false;
    if (!another_member(stream, input_)) {
      if (stream.avail_out > 0) refuse_cut(input_);
      return;
    }
    inflateReset2(&stream, kWithHeader);
  }

  CompressedInput input_;
  bool raw_;
  Inflate inflate_;
};

// What was decompressed last, for the window of a point.
class RecentBytes {
 public:
  Bytef* next() { return reinterpret_cast<Bytef*>(bytes_.data()) + at_; }
  uInt room() const { return static_cast<uInt>(kWindow - at_); }
  void advance(int64_t bytes) {
    total_ += bytes;
    at_ = (at_ + bytes) % kWindow;
  }
  std::string window() const {
    const auto at = static_cast<size_t>(at_);
    return total_ < kWindow ? bytes_.substr(0, at) : bytes_.substr(at) + bytes_.substr(0, at);
  }

 private:
  std::string bytes_ = std::string(static_cast<size_t>(kWindow), '\0');
  int64_t at_ = 0, total_ = 0;
};

std::string packed(const std::string& window) {
  uLongf length = compressBound(static_cast<uLong>(window.size()));
  std::string out(length, '\0');
  if (compress2(reinterpret_cast<Bytef*>(out.data()), &length, reinterpret_cast<const Bytef*>(window.data()),
                static_cast<uLong>(window.size()), 1) != Z_OK)
    throw InternalError("zlib cannot compress a window");
  out.resize(length);
  return out;
}

}  // namespace

std::unique_ptr<Decompressor> open_gzip(const ByteSource& file, const AccessPoints& points, size_t point) {
  return std::make_unique<GzipDecompressor>(file, points, points.points[point]);
}

AccessPoints find_gzip_points(const ByteSource& file, std::string& windows) {
  const int64_t distance = std::max(kLeastDistance, 4 * file.size() / kMostPoints);
  AccessPoints found;
  found.points.push_back({});
  CompressedInput input(file, 0);
  Inflate inflate(kWithHeader);
  z_stream& stream = *inflate.get();
  RecentBytes recent;
  while (true) {
    if (stream.avail_in == 0) refill(stream, input);
    if (stream.avail_in == 0) refuse_cut(input);
    stream.next_out = recent.next();
    stream.avail_out = recent.room();
    const uInt room = stream.avail_out;
    const int result = ::inflate(&stream, Z_BLOCK);
    recent.advance(room - stream.avail_out);
    found.size += room - stream.avail_out;
    if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR) refuse(input, stream);
    const bool far = found.size - found.points.back().out >= distance;
    const int64_t at = input.offset() - stream.avail_in;
    if (result == Z_STREAM_END) {
      if (!another_member(stream, input)) return found;
      inflateReset2(&stream, kWithHeader);
      if (far) found.points.push_back({.out = found.size, .in = input.offset() - stream.avail_in});
    } else if (far && (stream.data_type & 128) != 0 && (stream.data_type & 64) == 0) {
      const std::string window = packed(recent.window());
      found.points.push_back({.out = found.size,
                              .in = at,
                              .window = static_cast<int64_t>(windows.size()),
                              .window_bytes = static_cast<int64_t>(window.size()),
                              .bits = stream.data_type & 7});
      windows += window;
    }
  }
}

}  // namespace lockstep
