// One collective operation: what every rank of a group does together.
//
// All ranks of a group run the same collectives in the same order; a rank that does not is found out by its
// peers, who compare kind, type and size before they touch any data.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "comm/sum_type.h"

namespace lockstep {

enum class CollectiveKind : uint8_t {
  kNone,
  kAllReduce,
  kReduceScatter,
  kAllGather,
  kBroadcast,
  kAllToAll,
  kBarrier,
  kHostBarrier,
  kSend,
  kReceive
};
std::string_view name_of(CollectiveKind kind);

// Elements are dealt out to ranks in blocks of this many, so that the edges of shards, norms and hashes fall
// on the same places on any number of ranks.
inline constexpr int64_t kSliceBlock = 1024;

struct Slice {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t size() const { return end - begin; }
};
// The part of `count` elements that a rank owns.
Slice slice_of(int64_t count, int ranks, int rank, int64_t block = kSliceBlock);

// A rank among those of its host, who reach each other's memory.
struct HostPlace {
  int index = 0;
  int count = 1;
};

struct Collective {
  CollectiveKind kind = CollectiveKind::kNone;
  SumType type = SumType::kF32;
  SumOrder order = SumOrder::kCanonical;
  int64_t count = 0;    // elements of a buffer; bytes where nothing is summed
  int64_t element = 1;  // bytes of one
  int root = 0;
  // Reductions: this rank's partial sums in the order of leaves, the result lands in the first. Otherwise one
  // buffer.
  std::vector<std::byte*> buffers = {};
  std::byte* result = nullptr;  // of all_to_all
  bool held_once = false;       // see Gather in comm/group.h
  std::string label = {};       // for messages: "bucket 3"
  uint64_t number = 0;          // counted by the group
  // See Reduction in comm/group.h.
  std::function<void()> before = {}, after = {};

  bool sums() const { return kind == CollectiveKind::kAllReduce || kind == CollectiveKind::kReduceScatter; }
  int64_t bytes() const { return count * element; }
  // Elements in which a rank's part of them is counted.
  int64_t slice_block() const { return elements_in(type, kSliceBlock); }
};

// "all_reduce #17 (bucket 3, 64 MiB)"
std::string text_of(CollectiveKind kind, uint64_t number, std::string_view label, int64_t bytes);
std::string text_of(const Collective& collective);

}  // namespace lockstep
