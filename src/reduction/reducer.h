// Completes the canonical tree for the chunks that hosts send, without a socket: partial sums in, roots out.
//
// A chunk waits until every host has sent its part; whoever brings the last one adds them up, so that chunks
// are summed by as many threads as bring them. How much may wait is bounded by the windows of those who send.
#pragma once
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "comm/sum_program.h"
#include "reduction/frame.h"
#include "reduction/terms.h"

namespace lockstep::reduction {

using Bytes = std::shared_ptr<std::byte[]>;

struct Contribution {
  int64_t host = 0;
  int64_t rank = 0;  // who sends it, and gets the root
  FrameHeader header;
  Bytes data;
};

struct CompletedRoot {
  FrameHeader header;
  Bytes data;
  std::vector<int64_t> ranks;
};

class Reducer {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Reducer(const SessionTerms& terms);

  // The root, if this was the last part. CommError where hosts do not agree on a chunk, or one sends twice.
  std::optional<CompletedRoot> add(Contribution contribution);

  // Chunks that have waited since before `then`: who has sent them, and the first host that has not.
  struct WaitingChunk {
    FrameHeader header;
    int64_t missing_host = 0;
    std::vector<int64_t> ranks;
  };
  std::vector<WaitingChunk> waiting_since(Clock::time_point then);

  int64_t hosts() const { return static_cast<int64_t>(partials_.size()); }
  int64_t partials_of(int64_t host) const { return partials_[static_cast<size_t>(host)]; }

 private:
  struct Chunk {
    FrameHeader header;
    Clock::time_point since;
    std::vector<Bytes> data;  // by host
    std::vector<int64_t> ranks;
    int64_t missing = 0;
  };
  using Key = std::pair<uint64_t, uint32_t>;  // collective, chunk
  std::optional<Chunk> take_if_whole(Contribution contribution);

  SumProgram program_;
  std::vector<int64_t> partials_;  // by host
  std::mutex mutex_;
  std::map<Key, Chunk> chunks_;
};

}  // namespace lockstep::reduction
