#include "async/frame.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "base/error.h"

namespace lockstep::async {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr uint32_t kMagic = 0x3141534c;  // "LSA1"

template <typename T>
void put(AsyncHeaderBytes& bytes, size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

template <typename T>
T take(std::span<const std::byte, kAsyncHeaderBytes> bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

// What may follow a header: from so many bytes to so many.
struct PayloadBounds {
  uint32_t least = 0, most = 0;
};

PayloadBounds bounds_of(AsyncKind kind) {
  switch (kind) {
    case AsyncKind::kLoad:
    case AsyncKind::kState:
    case AsyncKind::kFrozen:
    case AsyncKind::kParams:
    case AsyncKind::kStage: return {1, kMostPiece};
    case AsyncKind::kSetup: return {1, kMostSetup};
    case AsyncKind::kServe:
    case AsyncKind::kWork:
    case AsyncKind::kServers: return {1, kMostSaid};
    case AsyncKind::kEnd: return {0, kMostSaid};
    case AsyncKind::kApply: return {sizeof(ApplyOrder), sizeof(ApplyOrder)};
    case AsyncKind::kPush: return {sizeof(PushFacts), sizeof(PushFacts)};
    case AsyncKind::kGive: return {sizeof(GiveOrder), sizeof(GiveOrder)};
    default: return {0, 0};
  }
}

template <typename T>
T payload_of(std::span<const std::byte> payload) {
  if (payload.size() != sizeof(T)) throw CommError("{} bytes instead of {}", payload.size(), sizeof(T));
  T value;
  std::memcpy(&value, payload.data(), sizeof value);
  return value;
}

}  // namespace

AsyncHeaderBytes encode(const AsyncHeader& header) {
  AsyncHeaderBytes bytes{};
  put(bytes, 0, kMagic);
  put(bytes, 4, static_cast<uint8_t>(header.kind));
  put(bytes, 6, header.index);
  put(bytes, 8, header.payload);
  put(bytes, 16, header.lease);
  put(bytes, 24, header.attempt);
  put(bytes, 32, header.offset);
  return bytes;
}

AsyncHeader decode(std::span<const std::byte, kAsyncHeaderBytes> bytes) {
  if (take<uint32_t>(bytes, 0) != kMagic) throw CommError("something else than a frame");
  const auto kind = take<uint8_t>(bytes, 4);
  if (kind < static_cast<uint8_t>(AsyncKind::kServe) || kind > static_cast<uint8_t>(AsyncKind::kEnd))
    throw CommError("a frame of an unknown kind ({})", kind);
  if (take<uint8_t>(bytes, 5) != 0 || take<uint32_t>(bytes, 12) != 0)
    throw CommError("a header with something between its fields");
  const AsyncHeader header{.kind = static_cast<AsyncKind>(kind),
                           .index = take<uint16_t>(bytes, 6),
                           .payload = take<uint32_t>(bytes, 8),
                           .lease = take<uint64_t>(bytes, 16),
                           .attempt = take<uint64_t>(bytes, 24),
                           .offset = take<uint64_t>(bytes, 32)};
  const PayloadBounds bounds = bounds_of(header.kind);
  if (header.payload < bounds.least || header.payload > bounds.most)
    throw CommError("a frame of kind {} with {} bytes; from {} to {} are taken", kind, header.payload,
                    bounds.least, bounds.most);
  // Beyond what any number of this program reaches: sums of two of them still fit.
  constexpr uint64_t kMostNumber = uint64_t{1} << 62;
  if (header.lease > kMostNumber || header.attempt > kMostNumber || header.offset > kMostNumber)
    throw CommError("a frame of kind {} with a number that is too large", kind);
  return header;
}

ApplyOrder apply_order(std::span<const std::byte> payload) { return payload_of<ApplyOrder>(payload); }
PushFacts push_facts(std::span<const std::byte> payload) { return payload_of<PushFacts>(payload); }
GiveOrder give_order(std::span<const std::byte> payload) { return payload_of<GiveOrder>(payload); }

}  // namespace lockstep::async
