// What workers and a Reduction Server say to each other once they know each other: frames of a fixed header
// and a payload of bounded length.
//
//   worker                                   server
//     join {terms}              ->
//                               <-   welcome {window in chunk}
//     partials {chunk, sums}    ->                                 at most a window of chunks unanswered
//                               <-   root {chunk, sum}             to every host, once all have sent theirs
//                               <-   waiting {for whom}            every second that a chunk is incomplete
//     bye                       ->
//                               <-   broken {why}                  instead of anything else: the session is
//                               over
//
// Numbers are little endian. A header is refused before any memory is taken for what it announces.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "comm/sum_type.h"

namespace lockstep::reduction {

enum class FrameKind : uint8_t { kJoin = 1, kWelcome, kPartials, kRoot, kWaiting, kBye, kBroken };

struct FrameHeader {
  FrameKind kind = FrameKind::kBye;
  SumType type = SumType::kF32;
  uint16_t partials = 0;    // sums in the payload, one after the other
  uint32_t chunk = 0;       // of the collective; of a welcome: the window
  uint64_t collective = 0;  // the workers' number of it
  uint32_t elements = 0;    // of each sum
  uint32_t payload = 0;     // bytes that follow

  bool operator==(const FrameHeader&) const = default;
};

inline constexpr size_t kHeaderBytes = 32;
// Elements of a chunk are at most this many bytes.
inline constexpr int64_t kLongestChunk = 1 << 20;
// Partial sums of one host, and of all of them.
inline constexpr int64_t kMostPartials = 64;
inline constexpr int64_t kMostSources = 4096;
// Of what is not sums: terms and reasons.
inline constexpr uint32_t kMostText = 64 << 10;

using HeaderBytes = std::array<std::byte, kHeaderBytes>;
HeaderBytes encode(const FrameHeader& header);
// CommError for what is no header, or announces more than may be sent.
FrameHeader decode(std::span<const std::byte, kHeaderBytes> bytes);

}  // namespace lockstep::reduction
