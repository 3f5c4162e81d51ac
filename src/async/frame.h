// What the processes of an asynchronous run say to each other once they know each other: frames of a fixed
// header and a payload of bounded length. The coordinator is who started the run; its orders to a server come
// in one stream, so that all servers do the same things in the same order.
//
//   server -> coordinator   serve {address}; state {buffer, bytes}; pong
//   coordinator -> server   setup {text}; load {buffer, bytes}; begin {version, updates}; give {lease, to};
//                           apply {lease, order}; drop {lease}; fetch; ping
//   worker -> coordinator   work {text}; ready; push {lease, facts}
//   coordinator -> worker   servers {text}; frozen {tensor, bytes}; lease {lease}
//   worker -> server        join; stage {lease, bytes}
//   server -> worker        joined; params {lease, bytes}; staged {lease}
//   coordinator -> all      end {why}: the run is over, or who hears it is not wanted
//
// Numbers are little endian. A header is refused before any memory is taken for what it announces.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace lockstep::async {

enum class AsyncKind : uint8_t {
  kServe = 1,
  kSetup,
  kLoad,
  kBegin,
  kGive,
  kApply,
  kDrop,
  kFetch,
  kState,
  kPing,
  kPong,
  kWork,
  kServers,
  kFrozen,
  kReady,
  kLease,
  kPush,
  kJoin,
  kJoined,
  kParams,
  kStage,
  kStaged,
  kEnd,
};

struct AsyncHeader {
  AsyncKind kind = AsyncKind::kEnd;
  uint16_t index = 0;  // of a buffer or a tensor
  uint32_t payload = 0;
  uint64_t lease = 0;    // or a version, or a worker's number
  uint64_t attempt = 0;  // of the lease; or a count of updates
  uint64_t offset = 0;   // in bytes, of what follows

  bool operator==(const AsyncHeader&) const = default;
};

inline constexpr size_t kAsyncHeaderBytes = 40;
// Of what is cut into pieces: parameters, gradients, state.
inline constexpr uint32_t kMostPiece = 1 << 20;
// Of a text; of the one that describes a server's part.
inline constexpr uint32_t kMostSaid = 64 << 10;
inline constexpr uint32_t kMostSetup = 16 << 20;

using AsyncHeaderBytes = std::array<std::byte, kAsyncHeaderBytes>;
AsyncHeaderBytes encode(const AsyncHeader& header);
// CommError for what is no header, or announces more than may be sent.
AsyncHeader decode(std::span<const std::byte, kAsyncHeaderBytes> bytes);

// Payload of kApply.
struct ApplyOrder {
  int64_t version = 0;  // that it makes
  int64_t updates = 0;  // made so far, with this one: what counts for the bias of moments
  float lr = 0;
  float scale = 0;  // of the gradient: clipping over the count
  int32_t skipped = 0;
  int32_t unused = 0;

  bool operator==(const ApplyOrder&) const = default;
};
static_assert(sizeof(ApplyOrder) == 32);

// Payload of kPush: what is known of a push whose gradient all servers hold.
struct PushFacts {
  double loss = 0;  // mean over what it counts
  double grad_norm = 0;
  int64_t count = 0;
  // Where the worker's time went since it heard of the lease.
  double waited_for_params = 0, input = 0, compute = 0, sent = 0;
  float scale = 0;
  int32_t unused = 0;

  bool operator==(const PushFacts&) const = default;
};
static_assert(sizeof(PushFacts) == 64);

// Payload of kGive: to whom.
struct GiveOrder {
  int64_t worker = 0;

  bool operator==(const GiveOrder&) const = default;
};

// CommError for a payload of another size.
ApplyOrder apply_order(std::span<const std::byte> payload);
PushFacts push_facts(std::span<const std::byte> payload);
GiveOrder give_order(std::span<const std::byte> payload);

}  // namespace lockstep::async
