#include "comm/wire/host_sums.h"

#include "base/error.h"

namespace lockstep::wire {
namespace {

// The split of the leaves over hosts.
LeafSplit by_host(const LeafSplit& split, const HostMap& map) {
  std::vector<int64_t> ends;
  for (int host = 0; host < map.hosts(); ++host)
    ends.push_back(split.range(map.first(host) + map.size(host) - 1).end);
  return {split.leaves(), ends};
}

std::vector<LeafRange> of_ranks(const LeafSplit& split, const HostMap& map, int host) {
  std::vector<LeafRange> all;
  for (int local = 0; local < map.size(host); ++local) {
    const auto& one = split.partials(map.first(host) + local);
    all.insert(all.end(), one.begin(), one.end());
  }
  return all;
}

SumProgram whole_tree(const LeafSplit& split, const HostMap& map, int own) {
  const LeafSplit hosts = by_host(split, map);
  std::vector<LeafRange> all;
  for (int host = 0; host < map.hosts(); ++host) {
    const std::vector<LeafRange> some = host == own ? of_ranks(split, map, host) : hosts.partials(host);
    all.insert(all.end(), some.begin(), some.end());
  }
  return {split.leaves(), all};
}

}  // namespace

HostSums::HostSums(const LeafSplit& split, const HostMap& map, int host)
    : sends_as_is_(map.size(host) == 1), whole_(whole_tree(split, map, host)) {
  const LeafSplit hosts = by_host(split, map);
  for (int one = 0; one < map.hosts(); ++one)
    partials_.push_back(static_cast<int64_t>(hosts.partials(one).size()));
  const std::vector<LeafRange> sources = of_ranks(split, map, host);
  size_t next = 0;
  for (const LeafRange& partial : hosts.partials(host)) {
    const size_t first = next;
    while (next < sources.size() && sources[next].end <= partial.end) ++next;
    parts_.push_back({SumProgram(split.leaves(), std::span(sources).subspan(first, next - first)), first});
  }
}

void HostSums::combine(SumType type, std::span<const std::byte* const> sources,
                       std::span<std::byte* const> partials, int64_t count) const {
  LOCKSTEP_CHECK(partials.size() == parts_.size(), "{} partial sums instead of {}", partials.size(),
                 parts_.size());
  for (size_t i = 0; i < parts_.size(); ++i) {
    const auto from = sources.subspan(parts_[i].first, static_cast<size_t>(parts_[i].sum.sources()));
    parts_[i].sum.run(type, from, partials.subspan(i, 1), count, false);
  }
}

}  // namespace lockstep::wire
