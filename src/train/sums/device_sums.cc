#include "train/sums/device_sums.h"

#include <algorithm>

namespace lockstep {
namespace {

// Wide loads begin at such addresses.
constexpr int64_t kAligned = 256;

int64_t aligned(int64_t bytes) { return (bytes + kAligned - 1) / kAligned * kAligned; }

}  // namespace

DeviceSums::DeviceSums(Group& group, Backend& backend, const DeviceReach& reach)
    : group_(group), backend_(backend), reach_(reach) {}

std::vector<DeviceSums::Part> DeviceSums::bring(DType dtype, const Shares& shares, const At& at) {
  const int64_t element = size_of(dtype);
  const auto slice_bytes = [&](int rank) {
    return shares.slices[static_cast<size_t>(rank)].size() * element;
  };
  const auto part_at = [&](int rank, size_t part, int receiver) {
    return at(rank, part) + shares.slices[static_cast<size_t>(receiver)].begin * element;
  };
  const int self = group_.rank();
  const RankRange& near = reach_.near();
  std::vector<Part> parts;
  for (int rank = near.first; rank < near.end(); ++rank) {
    const auto& own = shares.parts[static_cast<size_t>(rank)];
    for (size_t p = 0; p < own.size(); ++p) parts.push_back({own[p], part_at(rank, p, self)});
  }
  if (!reach_.sends()) return parts;

  const auto here = DeviceReach::host_sums(near, shares.leaves, shares.parts);
  int64_t sends = 0, receives = 0;
  for (const int rank : reach_.partners())
    sends += static_cast<int64_t>(here.size()) * aligned(slice_bytes(rank));
  for (const RankRange& host : reach_.hosts())
    if (host != near)
      receives += static_cast<int64_t>(DeviceReach::host_sums(host, shares.leaves, shares.parts).size()) *
                  aligned(slice_bytes(self));
  for (auto [buffer, wanted] : {std::pair{&sent_, sends}, std::pair{&received_, receives}}) {
    if (*buffer && (*buffer)->bytes() >= wanted) continue;
    bytes_ += wanted - (*buffer ? (*buffer)->bytes() : 0);
    *buffer = backend_.allocate(std::max<int64_t>(wanted, 1));
  }

  std::vector<DeviceMessages::Part> sent, received;
  auto* to = static_cast<std::byte*>(sent_->data());
  for (const int rank : reach_.partners()) {
    const int64_t bytes = slice_bytes(rank);
    if (bytes == 0) continue;
    for (const DeviceReach::HostSum& sum : here) {
      std::vector<Part> added;
      for (const auto& [neighbour, part] : sum.of)
        added.push_back({shares.parts[static_cast<size_t>(neighbour)][part], part_at(neighbour, part, rank)});
      add_up(dtype, shares.leaves, added, to, bytes / element);
      sent.push_back({rank, to, bytes});
      to += aligned(bytes);
    }
  }
  auto* from = static_cast<std::byte*>(received_->data());
  if (const int64_t bytes = slice_bytes(self); bytes > 0)
    for (const RankRange& host : reach_.hosts()) {
      if (host == near) continue;
      for (const DeviceReach::HostSum& sum : DeviceReach::host_sums(host, shares.leaves, shares.parts)) {
        received.push_back({reach_.partner(host, self), from, bytes});
        parts.push_back({sum.leaves, from});
        from += aligned(bytes);
      }
    }
  reach_.exchange(sent, received);
  std::ranges::sort(parts, {}, [](const Part& part) { return part.leaves.begin; });
  return parts;
}

void DeviceSums::add_up(DType dtype, int64_t leaves, std::span<const Part> parts, void* into,
                        int64_t count) const {
  if (count == 0) return;
  SumSources sources;
  std::vector<LeafRange> ranges;
  for (const Part& part : parts) {
    sources.addresses.push_back(part.at);
    ranges.push_back(part.leaves);
  }
  sources.merges = merges_of(leaves, ranges);
  reach_.sharing().sum(StreamKind::kCommunication, dtype, sources, into, count);
}

}  // namespace lockstep
