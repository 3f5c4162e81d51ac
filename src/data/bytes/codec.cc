#include "data/bytes/codec.h"

#include <lz4.h>
#include <snappy.h>
#include <zlib.h>
#include <zstd.h>

#include <array>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>

#include "base/error.h"

namespace lockstep {
namespace {

constexpr int kGzipWindow = 15 + 16;  // 32 kB, with a gzip header
constexpr size_t kMostBytes = std::numeric_limits<int>::max() / 2;
// What a byte can become at most: a copy of 255 bytes in lz4, of 258 in two bits in deflate.
constexpr size_t kMostOfLz4 = 255;
constexpr size_t kMostOfDeflate = 1032;

using ZstdReader = std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)>;
using ZstdWriter = std::unique_ptr<ZSTD_CCtx, decltype(&ZSTD_freeCCtx)>;

bool unzstd(std::string_view stored, std::span<char> out) {
  thread_local const ZstdReader reader(ZSTD_createDCtx(), &ZSTD_freeDCtx);
  return ZSTD_decompressDCtx(reader.get(), out.data(), out.size(), stored.data(), stored.size()) ==
         out.size();
}

std::optional<size_t> snappy_size(std::string_view stored) {
  size_t size = 0;
  if (!snappy::GetUncompressedLength(stored.data(), stored.size(), &size)) return {};
  return size;
}

bool unlz4(std::string_view stored, std::span<char> out) {
  return LZ4_decompress_safe(stored.data(), out.data(), static_cast<int>(stored.size()),
                             static_cast<int>(out.size())) == static_cast<int>(out.size());
}

// zlib's interface takes pointers to bytes that it does not change.
Bytef* bytes_of(std::string_view text) { return reinterpret_cast<Bytef*>(const_cast<char*>(text.data())); }

// Several members may follow each other, as gzip allows.
bool gunzip(std::string_view stored, std::span<char> out) {
  z_stream stream{};
  if (inflateInit2(&stream, kGzipWindow) != Z_OK) throw InternalError("zlib cannot be set up");
  stream.next_in = bytes_of(stored);
  stream.avail_in = static_cast<uInt>(stored.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  int result = Z_OK;
  do {
    result = inflate(&stream, Z_FINISH);
  } while (result == Z_STREAM_END && stream.avail_in > 0 && stream.avail_out > 0 &&
           inflateReset(&stream) == Z_OK);
  const bool whole = result == Z_STREAM_END && stream.avail_out == 0 && stream.avail_in == 0;
  inflateEnd(&stream);
  return whole;
}

std::string zstd(std::string_view bytes, int level) {
  thread_local const ZstdWriter writer(ZSTD_createCCtx(), &ZSTD_freeCCtx);
  std::string out(ZSTD_compressBound(bytes.size()), '\0');
  const size_t size =
      ZSTD_compressCCtx(writer.get(), out.data(), out.size(), bytes.data(), bytes.size(), level);
  if (ZSTD_isError(size)) throw InternalError("zstd: {}", ZSTD_getErrorName(size));
  out.resize(size);
  return out;
}

std::string lz4(std::string_view bytes) {
  std::string out(static_cast<size_t>(LZ4_compressBound(static_cast<int>(bytes.size()))), '\0');
  const int size = LZ4_compress_default(bytes.data(), out.data(), static_cast<int>(bytes.size()),
                                        static_cast<int>(out.size()));
  if (size <= 0) throw InternalError("lz4 cannot compress {} bytes", bytes.size());
  out.resize(static_cast<size_t>(size));
  return out;
}

std::string gzip(std::string_view bytes, int level) {
  z_stream stream{};
  if (deflateInit2(&stream, level == 0 ? Z_DEFAULT_COMPRESSION : level, Z_DEFLATED, kGzipWindow, 8,
                   Z_DEFAULT_STRATEGY) != Z_OK)
    throw InternalError("zlib cannot be set up");
  std::string out(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = bytes_of(bytes);
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = bytes_of(out);
  stream.avail_out = static_cast<uInt>(out.size());
  const int result = deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  if (result != Z_STREAM_END) throw InternalError("zlib cannot compress {} bytes", bytes.size());
  return out;
}

}  // namespace

std::string_view name_of(Codec compression) {
  constexpr auto kNames = std::to_array<std::string_view>({"none", "snappy", "gzip", "zstd", "lz4"});
  return kNames[static_cast<size_t>(compression)];
}

bool may_unpack_to(Codec compression, std::string_view stored, size_t bytes) {
  if (stored.size() > kMostBytes || bytes > kMostBytes) return false;
  switch (compression) {
    case Codec::kNone: return stored.size() == bytes;
    case Codec::kSnappy: return snappy_size(stored) == bytes;
    case Codec::kGzip: return bytes <= stored.size() * kMostOfDeflate;
    case Codec::kZstd: {
      const unsigned long long size = ZSTD_getFrameContentSize(stored.data(), stored.size());
      // Several frames may follow each other, and not all say how much they hold.
      return size != ZSTD_CONTENTSIZE_ERROR && (size == ZSTD_CONTENTSIZE_UNKNOWN || size <= bytes);
    }
    case Codec::kLz4: return bytes <= stored.size() * kMostOfLz4;
  }
  return false;
}

bool decompress(Codec compression, std::string_view stored, std::span<char> out) {
  if (!may_unpack_to(compression, stored, out.size())) return false;
  switch (compression) {
    case Codec::kNone:
      if (!stored.empty()) std::memcpy(out.data(), stored.data(), stored.size());
      return true;
    case Codec::kSnappy: return snappy::RawUncompress(stored.data(), stored.size(), out.data());
    case Codec::kGzip: return gunzip(stored, out);
    case Codec::kZstd: return unzstd(stored, out);
    case Codec::kLz4: return unlz4(stored, out);
  }
  return false;
}

std::string compress(Codec compression, std::string_view bytes, int level) {
  LOCKSTEP_CHECK(bytes.size() <= kMostBytes, "{} bytes to compress at once", bytes.size());
  switch (compression) {
    case Codec::kNone: break;
    case Codec::kSnappy: {
      std::string out;
      snappy::Compress(bytes.data(), bytes.size(), &out);
      return out;
    }
    case Codec::kGzip: return gzip(bytes, level);
    case Codec::kZstd: return zstd(bytes, level);
    case Codec::kLz4: return lz4(bytes);
  }
  return std::string(bytes);
}

}  // namespace lockstep
