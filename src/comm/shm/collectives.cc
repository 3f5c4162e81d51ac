#include "comm/shm/collectives.h"

#include <algorithm>
#include <cstring>
#include <fstream>

#include "comm/simd/sum_loops.h"

namespace lockstep::shm {
namespace {

// Up to here one stage with a copy is faster than two without; a sum by mailbox reads all of everybody's,
// where a direct one reads and writes this rank's slice.
constexpr int64_t kSmallBytes = 16 << 10;
constexpr int64_t kSmallSumBytes = 1 << 10;
// Of a machine that does not say.
constexpr int64_t kUsualCacheBytes = 16 << 20;

// The largest cache that a processor shares with others. sysconf's figure is that of the whole package, of
// which a core reaches only its part.
int64_t shared_cache_bytes() {
  std::ifstream file("/sys/devices/system/cpu/cpu0/cache/index3/size");
  int64_t kilobytes = 0;
  char unit = 0;
  if (file >> kilobytes >> unit && unit == 'K' && kilobytes > 0) return kilobytes << 10;
  return kUsualCacheBytes;
}

void copy_bytes(std::byte* into, const std::byte* from, int64_t bytes, bool streaming) {
  if (!streaming) return comm::sum_loops().copy(into, from, bytes);
  comm::sum_loops().stream(into, from, bytes);
  _mm_sfence();
}

}  // namespace

Collectives::Collectives(const Members& members, const Watch& watch)
    : members_(members), stages_(members, watch), cache_bytes_(shared_cache_bytes()) {}

void Collectives::run(const Collective& collective, const SumProgram& program) {
  const bool direct = is_direct(collective);
  switch (collective.kind) {
    case CollectiveKind::kAllReduce:
    case CollectiveKind::kReduceScatter:
      return direct ? reduce_direct(collective, program) : reduce_by_mailbox(collective, program);
    case CollectiveKind::kAllGather:
      if (collective.held_once) return stages_.meet(collective, false);
      return direct ? gather_direct(collective) : gather_by_mailbox(collective);
    case CollectiveKind::kBroadcast:
      return direct ? broadcast_direct(collective) : broadcast_by_mailbox(collective);
    case CollectiveKind::kAllToAll:
      return direct ? exchange_direct(collective) : exchange_by_mailbox(collective);
    case CollectiveKind::kBarrier:
    case CollectiveKind::kHostBarrier: return stages_.meet(collective, false);
    case CollectiveKind::kNone:
    case CollectiveKind::kSend:
    case CollectiveKind::kReceive: break;
  }
  throw InternalError("{} is not a collective", name_of(collective.kind));
}

bool Collectives::is_direct(const Collective& collective) const {
  const bool sum =
      collective.kind == CollectiveKind::kAllReduce || collective.kind == CollectiveKind::kReduceScatter;
  if (collective.bytes() <= (sum ? kSmallSumBytes : kSmallBytes)) return false;
  const int64_t bytes = collective.kind == CollectiveKind::kAllToAll ? collective.bytes() * members_.size()
                                                                     : collective.bytes();
  return std::all_of(collective.buffers.begin(), collective.buffers.end(),
                     [&](const std::byte* buffer) { return members_.own().holds(buffer, bytes); });
}

void Collectives::moving(const Collective& collective) {
  members_.own().header().collectives.set_state(collective.number, LedgerState::kMoving);
}

// Those after this rank first, so that not all read from the same one at a time.
std::vector<int> Collectives::peers() const {
  std::vector<int> order;
  for (int hop = 1; hop < members_.size(); ++hop) order.push_back((members_.rank + hop) % members_.size());
  return order;
}

// ---- sums ----

void Collectives::reduce_direct(const Collective& collective, const SumProgram& program) {
  const int64_t bytes = collective.bytes();
  RouteChoice& route = collective.kind == CollectiveKind::kAllReduce ? to_all_ : to_own_;
  if (members_.rank == 0) stages_.propose(route.through_caches(bytes));
  stages_.meet(collective, true, collective.buffers);
  const bool cached = stages_.through_caches();
  const int64_t start = steady_now_ns();
  moving(collective);
  reduce_slice(collective, program, cached);
  stages_.meet(collective, true);
  if (members_.rank == 0) route.took(bytes, cached, steady_now_ns() - start);
}

void Collectives::reduce_slice(const Collective& collective, const SumProgram& program, bool cached) {
  const Slice slice = slice_of(collective.count, members_.size(), members_.rank, collective.slice_block());
  const int64_t offset = slice.begin * collective.element;
  const bool to_all = collective.kind == CollectiveKind::kAllReduce;
  std::vector<const std::byte*> sources;
  std::vector<std::byte*> outputs = {collective.buffers[0] + offset};
  for (int rank = 0; rank < members_.size(); ++rank) {
    for (int64_t i = 0; i < stages_.buffers_of(rank); ++i)
      sources.push_back(stages_.buffer_of(rank, i) + offset);
    if (to_all && rank != members_.rank) outputs.push_back(stages_.buffer_of(rank, 0) + offset);
  }
  program.run(collective.type, sources, outputs, slice.size(), !cached);
}

void Collectives::reduce_by_mailbox(const Collective& collective, const SumProgram& program) {
  // Pieces are cut for the rank with the most partial sums, whoever it is.
  const int64_t piece_bytes = kMailboxBytes / program.widest() / kLine * kLine;
  const int64_t piece = piece_bytes / collective.element;
  const Slice slice =
      collective.kind == CollectiveKind::kAllReduce
          ? Slice{0, collective.count}
          : slice_of(collective.count, members_.size(), members_.rank, collective.slice_block());
  for (int64_t done = 0; done < collective.count; done += piece) {
    const int64_t elements = std::min(piece, collective.count - done);
    for (size_t i = 0; i < collective.buffers.size(); ++i)
      std::memcpy(stages_.next_mailbox() + static_cast<int64_t>(i) * piece_bytes,
                  collective.buffers[i] + done * collective.element,
                  static_cast<size_t>(elements * collective.element));
    stages_.meet(collective, false, collective.buffers);
    const int64_t begin = std::max(done, slice.begin);
    const int64_t end = std::min(done + elements, slice.end);
    if (begin >= end) continue;
    std::vector<const std::byte*> sources;
    for (int rank = 0; rank < members_.size(); ++rank)
      for (int64_t i = 0; i < stages_.buffers_of(rank); ++i)
        sources.push_back(stages_.mailbox_of(rank) + i * piece_bytes + (begin - done) * collective.element);
    std::byte* const output = collective.buffers[0] + begin * collective.element;
    program.run(collective.type, sources, {&output, 1}, end - begin, false);
  }
}

// ---- copies ----

void Collectives::gather_direct(const Collective& collective) {
  stages_.meet(collective, true, collective.buffers);
  moving(collective);
  copy_slices(collective, collective.bytes() * members_.size() > cache_bytes_);
  stages_.meet(collective, true);
}

void Collectives::copy_slices(const Collective& collective, bool streaming) {
  for (const int peer : peers()) {
    const Slice slice = slice_of(collective.count, members_.size(), peer);
    const int64_t offset = slice.begin * collective.element;
    copy_bytes(collective.buffers[0] + offset, stages_.buffer_of(peer, 0) + offset,
               slice.size() * collective.element, streaming);
  }
}

void Collectives::gather_by_mailbox(const Collective& collective) {
  const auto bytes_of = [&](int rank) {
    return slice_of(collective.count, members_.size(), rank).size() * collective.element;
  };
  const auto begin_of = [&](int rank) {
    return slice_of(collective.count, members_.size(), rank).begin * collective.element;
  };
  int64_t most = 0;
  for (int rank = 0; rank < members_.size(); ++rank) most = std::max(most, bytes_of(rank));
  for (int64_t done = 0; done < most; done += kMailboxBytes) {
    const auto piece_of = [&](int rank) {
      return static_cast<size_t>(std::clamp<int64_t>(bytes_of(rank) - done, 0, kMailboxBytes));
    };
    std::byte* const data = collective.buffers[0] + done;
    std::memcpy(stages_.next_mailbox(), data + begin_of(members_.rank), piece_of(members_.rank));
    stages_.meet(collective, false);
    for (const int peer : peers())
      std::memcpy(data + begin_of(peer), stages_.mailbox_of(peer), piece_of(peer));
  }
}

void Collectives::broadcast_direct(const Collective& collective) {
  stages_.meet(collective, true, collective.buffers);
  moving(collective);
  if (members_.rank != collective.root)
    copy_bytes(collective.buffers[0], stages_.buffer_of(collective.root, 0), collective.bytes(),
               collective.bytes() * members_.size() > cache_bytes_);
  stages_.meet(collective, true);
}

void Collectives::broadcast_by_mailbox(const Collective& collective) {
  for (int64_t done = 0; done < collective.bytes(); done += kMailboxBytes) {
    const auto bytes = static_cast<size_t>(std::min(kMailboxBytes, collective.bytes() - done));
    std::byte* const data = collective.buffers[0] + done;
    if (members_.rank == collective.root) std::memcpy(stages_.next_mailbox(), data, bytes);
    stages_.meet(collective, false);
    if (members_.rank != collective.root) std::memcpy(data, stages_.mailbox_of(collective.root), bytes);
  }
}

void Collectives::exchange_direct(const Collective& collective) {
  stages_.meet(collective, true, collective.buffers);
  moving(collective);
  const int64_t bytes = collective.bytes();
  std::memcpy(collective.result + members_.rank * bytes, collective.buffers[0] + members_.rank * bytes,
              static_cast<size_t>(bytes));
  for (const int peer : peers())
    copy_bytes(collective.result + peer * bytes, stages_.buffer_of(peer, 0) + members_.rank * bytes, bytes,
               bytes * members_.size() * members_.size() > cache_bytes_);
  stages_.meet(collective, true);
}

void Collectives::exchange_by_mailbox(const Collective& collective) {
  const int64_t bytes = collective.bytes();
  const int64_t piece = kMailboxBytes / members_.size() / kLine * kLine;
  for (int64_t done = 0; done < bytes; done += piece) {
    const auto part = static_cast<size_t>(std::min(piece, bytes - done));
    for (int rank = 0; rank < members_.size(); ++rank)
      std::memcpy(stages_.next_mailbox() + rank * piece, collective.buffers[0] + rank * bytes + done, part);
    stages_.meet(collective, false);
    for (int rank = 0; rank < members_.size(); ++rank)
      std::memcpy(collective.result + rank * bytes + done, stages_.mailbox_of(rank) + members_.rank * piece,
                  part);
  }
}

}  // namespace lockstep::shm
