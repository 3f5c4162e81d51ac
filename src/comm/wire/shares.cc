#include "comm/wire/shares.h"

#include <algorithm>

namespace lockstep::wire {
namespace {

// A chunk must be long enough that starting a message costs nothing beside it, and short enough that the
// first is summed early and those under way to all hosts fit in the caches and sockets. On links of 1 Gbit/s
// four hosts sum 16 MiB in 1.09 times the wire bound with 1 MiB in flight, and in 1.06 times with 256 KiB;
// where nothing but the processors limits, 256 KiB is as fast as 1 MiB.
constexpr int64_t kShortest = 64 << 10;   // bytes
constexpr int64_t kInFlight = 256 << 10;  // bytes, to all other hosts together
constexpr int64_t kChunksEach = 4;        // of an owner, at least, where they do not get too short
constexpr int64_t kAlign = 1024;          // values

// Nobody sees who owns what in an all_reduce, so every host owns the same, however many ranks it has: then
// no link carries more than another.
std::vector<Slice> even_by_host(const HostMap& map, const Collective& collective) {
  const int64_t block = elements_in(collective.type, 256);
  std::vector<Slice> slices;
  for (int rank = 0; rank < map.ranks(); ++rank) {
    const int host = map.host_of(rank);
    const Slice whole = slice_of(collective.count, map.hosts(), host, block);
    const Slice part = slice_of(whole.size(), map.size(host), map.local_rank(rank), block);
    slices.push_back({whole.begin + part.begin, whole.begin + part.end});
  }
  return slices;
}

std::vector<Slice> even_by_rank(const HostMap& map, const Collective& collective) {
  std::vector<Slice> slices;
  for (int rank = 0; rank < map.ranks(); ++rank)
    slices.push_back(slice_of(collective.count, map.ranks(), rank, collective.slice_block()));
  return slices;
}

}  // namespace

Shares::Shares(const HostMap& map, const Collective& collective)
    : map_(map),
      slices_(collective.kind == CollectiveKind::kAllReduce ? even_by_host(map, collective)
                                                            : even_by_rank(map, collective)) {
  int64_t most = 0;
  for (const Slice& slice : slices_) most = std::max(most, slice.size());
  const int64_t longest = std::max(kShortest, kInFlight / std::max(1, map.hosts() - 1));
  const int64_t bytes = std::clamp(most * collective.element / kChunksEach, kShortest, longest);
  const int64_t align = elements_in(collective.type, kAlign);
  chunk_ = std::max<int64_t>(1, bytes / collective.element / align) * align;
  chunks_ = (most + chunk_ - 1) / chunk_;
}

Slice Shares::chunk(int owner, int64_t index) const {
  const Slice& slice = slices_[static_cast<size_t>(owner)];
  if (index < 0) return {};
  const auto edge = [&](int64_t at) { return std::min(slice.end, slice.begin + at * chunk_); };
  return {edge(index), edge(index + 1)};
}

int Shares::carrier(int host, int owner, int64_t index) const {
  if (map_.host_of(owner) == host) return owner;
  return map_.first(host) + static_cast<int>((map_.local_rank(owner) + index) % map_.size(host));
}

}  // namespace lockstep::wire
