#include "fuzz/repair.h"

#define ZLIB_CONST
#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/sha256.h"
#include "data/block/block_layout.h"
#include "data/bytes/byte_source.h"
#include "data/bytes/tfrecord_frame.h"
#include "data/cache/row_file.h"

namespace lockstep::testing {
namespace {

template <typename T>
void put_at(std::string& bytes, size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

uint32_t big_endian(std::string_view bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

}  // namespace

std::string repaired_tfrecord(std::string_view bytes) {
  std::string out(bytes);
  for (size_t at = 0; out.size() - at >= static_cast<size_t>(kTfrecordHeader);) {
    put_at(out, at + 8, masked_crc32c(std::string_view(out).substr(at, 8)));
    uint64_t length = 0;
    std::memcpy(&length, out.data() + at, 8);
    at += static_cast<size_t>(kTfrecordHeader);
    if (out.size() - at < static_cast<size_t>(kTfrecordTrailer) ||
        length > out.size() - at - static_cast<size_t>(kTfrecordTrailer))
      break;
    put_at(out, at + length, masked_crc32c(std::string_view(out).substr(at, length)));
    at += length + static_cast<size_t>(kTfrecordTrailer);
  }
  return out;
}

std::string repaired_block_file(std::string_view bytes) {
  std::string out(bytes);
  const size_t magic = kBlockMagic.size();
  const auto trailer = static_cast<size_t>(kBlockTrailerBytes);
  if (out.size() < magic + trailer) return out;
  out.replace(0, magic, kBlockMagic);
  out.replace(out.size() - magic, magic, kBlockMagic);
  uint64_t footer_bytes = 0;
  std::memcpy(&footer_bytes, out.data() + out.size() - trailer, 8);
  if (footer_bytes > out.size() - magic - trailer) return out;
  const size_t at = out.size() - trailer - footer_bytes;
  put_at(out, out.size() - trailer + 8, chunk_hash(std::string_view(out).substr(at, footer_bytes)));
  try {
    BlockFooter footer = read_block_footer(*open_text("file", out));
    for (StoredBlock& block : footer.blocks)
      for (StoredChunk& chunk : block.chunks)
        chunk.hash =
            chunk_hash(std::string_view(out).substr(static_cast<size_t>(chunk.offset), chunk.stored));
    return out.substr(0, at) + to_bytes(footer);
  } catch (const UserError&) {
    return out;
  }
}

std::string repaired_row_file(std::string_view bytes) {
  std::string out(bytes);
  constexpr size_t kHeader = 160;
  if (out.size() < kHeader + sizeof(uint64_t)) return out;
  out.replace(0, kRowsMagic.size(), kRowsMagic);
  put_at(out, kHeader, chunk_hash(std::string_view(out).substr(0, kHeader)));
  return out;
}

std::string repaired_shard_index(std::string_view bytes) {
  constexpr std::string_view kMagic = "lockstep index 2\n";
  constexpr size_t kDigest = 64;
  if (bytes.size() < kMagic.size() + kDigest) return std::string(bytes);
  const std::string_view body = bytes.substr(kMagic.size() + kDigest);
  return std::string(kMagic) + sha256(body) + std::string(body);
}

std::string repaired_access_points(std::string_view bytes) {
  constexpr size_t kPlace = 8, kDigest = 64;
  if (bytes.size() < kPlace + kDigest) return std::string(bytes);
  const size_t end = bytes.size() - kPlace - kDigest;
  uint64_t place = 0;
  std::memcpy(&place, bytes.data() + end, kPlace);
  if (place > end) return std::string(bytes);
  return std::string(bytes.substr(0, end + kPlace)) + sha256(bytes.substr(place, end - place));
}

// Members are taken to begin where the sizes before them say; a wrong size makes data look like a header, and
// that too is repaired.
std::string repaired_tar(std::string_view bytes) {
  constexpr size_t kBlock = 512, kSumAt = 148, kSumEnd = 156, kSizeAt = 124, kSizeDigits = 12;
  std::string out(bytes);
  for (size_t at = 0; out.size() - at >= kBlock;) {
    const std::string_view header = std::string_view(out).substr(at, kBlock);
    if (std::all_of(header.begin(), header.end(), [](char c) { return c == 0; })) break;
    unsigned sum = 0;
    for (size_t i = 0; i < kBlock; ++i)
      sum += i >= kSumAt && i < kSumEnd ? ' ' : static_cast<unsigned char>(header[i]);
    out.replace(at + kSumAt, kSumEnd - kSumAt, fmt::format("{:06o}", sum) + std::string("\0 ", 2));
    size_t size = 0;
    for (const char digit : std::string_view(out).substr(at + kSizeAt, kSizeDigits)) {
      if (digit < '0' || digit > '7') break;
      size = size * 8 + static_cast<size_t>(digit - '0');
    }
    at += kBlock;
    const size_t padded = (size + kBlock - 1) / kBlock * kBlock;
    if (padded > out.size() - at) break;
    at += padded;
  }
  return out;
}

std::string repaired_png(std::string_view bytes) {
  constexpr size_t kSignature = 8, kAround = 12;  // length and kind before the data, crc behind
  std::string out(bytes);
  for (size_t at = kSignature; out.size() >= at + kAround;) {
    const size_t length = big_endian(out, at);
    if (length > out.size() - at - kAround) break;
    const auto crc = static_cast<uint32_t>(
        crc32_z(0, reinterpret_cast<const Bytef*>(out.data()) + at + 4, static_cast<z_size_t>(length + 4)));
    for (size_t i = 0; i < 4; ++i) out[at + 8 + length + i] = static_cast<char>(crc >> (24 - 8 * i));
    at += length + kAround;
  }
  return out;
}

std::string repaired_gzip(std::string_view bytes) {
  constexpr size_t kHeader = 10, kTrailer = 8, kMost = 1 << 20;
  if (bytes.size() < kHeader + kTrailer || !bytes.starts_with("\x1f\x8b")) return std::string(bytes);
  // A plain header: one with a name or more would hide where the data begins.
  std::string out(bytes);
  out.replace(0, 4, std::string_view("\x1f\x8b\x08\0", 4));
  z_stream stream{};
  if (inflateInit2(&stream, -15) != Z_OK) return out;
  std::string content(kMost, '\0');
  stream.next_in = reinterpret_cast<const Bytef*>(out.data()) + kHeader;
  stream.avail_in = static_cast<uInt>(out.size() - kHeader);
  stream.next_out = reinterpret_cast<Bytef*>(content.data());
  stream.avail_out = static_cast<uInt>(content.size());
  const int result = inflate(&stream, Z_FINISH);
  const size_t taken = kHeader + stream.total_in, made = stream.total_out;
  inflateEnd(&stream);
  if (result != Z_STREAM_END || out.size() - taken < kTrailer) return out;
  put_at(out, taken, static_cast<uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(content.data()), made)));
  put_at(out, taken + 4, static_cast<uint32_t>(made));
  return out;
}

}  // namespace lockstep::testing
