#include "reduction/frame.h"

#include <bit>
#include <cstring>

#include "base/error.h"

namespace lockstep::reduction {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr uint32_t kMagic = 0x3152534c;  // "LSR1"

template <typename T>
void put(HeaderBytes& bytes, size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

template <typename T>
T take(std::span<const std::byte, kHeaderBytes> bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

void check_sums(const FrameHeader& header) {
  const int64_t chunk = int64_t{header.elements} * size_of(header.type);
  if (chunk == 0 || chunk > kLongestChunk)
    throw CommError("a chunk of {} bytes; they have up to {}", chunk, kLongestChunk);
  if (header.partials == 0 || header.partials > kMostPartials)
    throw CommError("{} partial sums in a frame; a host has up to {}", header.partials, kMostPartials);
  if (header.kind == FrameKind::kRoot && header.partials != 1)
    throw CommError("{} sums as the root of a chunk", header.partials);
  if (int64_t{header.payload} != chunk * header.partials)
    throw CommError("{} bytes for {} partial sums of {} bytes", header.payload, header.partials, chunk);
}

}  // namespace

HeaderBytes encode(const FrameHeader& header) {
  HeaderBytes bytes{};
  put(bytes, 0, kMagic);
  put(bytes, 4, static_cast<uint8_t>(header.kind));
  put(bytes, 5, static_cast<uint8_t>(header.type));
  put(bytes, 6, header.partials);
  put(bytes, 8, header.chunk);
  put(bytes, 12, header.elements);
  put(bytes, 16, header.collective);
  put(bytes, 24, header.payload);
  return bytes;
}

FrameHeader decode(std::span<const std::byte, kHeaderBytes> bytes) {
  if (take<uint32_t>(bytes, 0) != kMagic) throw CommError("something else than a frame");
  const auto kind = take<uint8_t>(bytes, 4);
  const auto type = take<uint8_t>(bytes, 5);
  if (kind < static_cast<uint8_t>(FrameKind::kJoin) || kind > static_cast<uint8_t>(FrameKind::kBroken))
    throw CommError("a frame of an unknown kind ({})", kind);
  if (type > static_cast<uint8_t>(kLastSumType)) throw CommError("sums of an unknown type ({})", type);
  if (take<uint32_t>(bytes, 28) != 0) throw CommError("a header with something after its end");
  const FrameHeader header{.kind = static_cast<FrameKind>(kind),
                           .type = static_cast<SumType>(type),
                           .partials = take<uint16_t>(bytes, 6),
                           .chunk = take<uint32_t>(bytes, 8),
                           .collective = take<uint64_t>(bytes, 16),
                           .elements = take<uint32_t>(bytes, 12),
                           .payload = take<uint32_t>(bytes, 24)};
  if (header.kind == FrameKind::kPartials || header.kind == FrameKind::kRoot)
    check_sums(header);
  else if (header.payload > kMostText)
    throw CommError("a text of {} bytes; up to {} are taken", header.payload, kMostText);
  return header;
}

}  // namespace lockstep::reduction
