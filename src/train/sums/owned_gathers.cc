#include "train/sums/owned_gathers.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "ops/norm_parts.h"

namespace lockstep {
namespace {

int64_t part_bytes(int64_t elements) { return elements / kFlatBlock * kNormPartBytes; }

int64_t all_bytes(const FlatLayout& whole) { return part_bytes(whole.numel()); }

// Of those that lie in a slice; entries lie one behind the other.
size_t first_entry(std::span<const FlatEntry> entries, const Slice& slice) {
  const auto behind = std::ranges::upper_bound(entries, slice.begin, {}, &FlatEntry::offset);
  return static_cast<size_t>(behind - entries.begin()) - (behind == entries.begin() ? 0 : 1);
}

// The pieces of those who hold the same: all along the data axis.
class SquaredPieces {
 public:
  // `rank`: one of them.
  SquaredPieces(const FlatLayout& layout, int rank, const ModelHolders& holders, const Ownership& ownership)
      : layout_(layout),
        mesh_(holders.mesh()),
        ownership_(ownership),
        buckets_(ownership.is_split() ? ownership.buckets(layout) : Buckets()) {
    if (mesh_.tensor == 1) return;
    for (const FlatEntry& entry : layout.entries())
      spoken_for_.push_back(holders.speaks_for(rank, entry.name));
  }

  std::vector<Slice> of(int rank) const {
    const int data = mesh_.splits_model() ? mesh_.coordinate(MeshAxis::kData, rank) : rank;
    if (ownership_.is_split()) return spoken_for(ownership_.owned_by(data, buckets_));
    if (!mesh_.splits_model()) return ownership_.owned_by(data, layout_);
    return spoken_for({slice_of(layout_.numel(), mesh_.data, data)});
  }

 private:
  // Where tensor ranks hold the same, one of them makes its parts of the norm.
  std::vector<Slice> spoken_for(std::vector<Slice> slices) const {
    if (mesh_.tensor == 1) return slices;
    std::vector<Slice> spoken;
    const auto entries = layout_.entries();
    for (const Slice& slice : slices)
      for (size_t i = first_entry(entries, slice); i < entries.size() && entries[i].offset < slice.end; ++i) {
        const int64_t begin = std::max(slice.begin, entries[i].offset);
        const int64_t end =
            std::min(slice.end, i + 1 < entries.size() ? entries[i + 1].offset : layout_.numel());
        if (begin >= end || !spoken_for_[i]) continue;
        if (!spoken.empty() && spoken.back().end == begin && begin != slice.begin)
          spoken.back().end = end;
        else
          spoken.push_back({begin, end});
      }
    return spoken;
  }

  const FlatLayout& layout_;
  MeshShape mesh_;
  const Ownership& ownership_;
  Buckets buckets_;
  std::vector<bool> spoken_for_;  // per parameter; where tensor ranks share the model
};

}  // namespace

std::vector<Slice> squared_by(int rank, const FlatLayout& layout, const ModelHolders& holders,
                              const Ownership& ownership) {
  return SquaredPieces(layout, rank, holders, ownership).of(rank);
}

// An all_gather deals out whole blocks: so many bytes for everybody, that those of the owner of most fit.
int64_t SquareGather::stride(const FlatLayout& whole, const ModelHolders& holders, const Ownership& ownership,
                             int workers) {
  const MeshShape& mesh = holders.mesh();
  const std::vector<FlatLayout> layouts = holders.layouts_of(whole);
  std::vector<std::optional<SquaredPieces>> pieces(layouts.size());
  int64_t most = 0;
  for (int rank = 0; rank < workers; ++rank) {
    const auto at =
        static_cast<size_t>(holders.is_split() ? mesh.coordinate(MeshAxis::kPipeline, rank) * mesh.tensor +
                                                     mesh.coordinate(MeshAxis::kTensor, rank)
                                               : 0);
    if (!pieces[at]) pieces[at].emplace(layouts[at], rank, holders, ownership);
    most = std::max(most, part_bytes(numel(pieces[at]->of(rank))));
  }
  most += int64_t{sizeof(StepTotals)};
  return (most + kSliceBlock - 1) / kSliceBlock * kSliceBlock;
}

SquareGather::SquareGather(Group& group, Backend& backend, const FlatLayout& whole,
                           const ModelHolders& holders, const Ownership& ownership, int64_t stride)
    : group_(group),
      backend_(backend),
      stride_(stride),
      own_bytes_(part_bytes(
          numel(squared_by(group.rank(), holders.layout_of(group.rank(), whole), holders, ownership)))),
      gathered_(group.allocate(stride_ * group.size())),
      ordered_(backend.allocate(all_bytes(whole), MemoryKind::kPinned)),
      all_(backend.memory() == MemoryKind::kDevice ? backend.allocate(all_bytes(whole)) : nullptr) {
  for (int rank = 0; rank < group.size(); ++rank) {
    int64_t from = rank * stride_ + int64_t{sizeof(StepTotals)};
    const FlatLayout layout = holders.layout_of(rank, whole);
    const auto entries = layout.entries();
    for (const Slice& slice : squared_by(rank, layout, holders, ownership))
      for (size_t i = 0; i < entries.size(); ++i) {
        const int64_t begin = std::max(slice.begin, entries[i].offset);
        const int64_t end =
            std::min(slice.end, i + 1 < entries.size() ? entries[i + 1].offset : layout.numel());
        if (begin >= end) continue;
        const int64_t to = whole.find(entries[i].name).offset + begin - entries[i].offset;
        runs_.push_back({from, part_bytes(to), part_bytes(end - begin)});
        from += part_bytes(end - begin);
      }
  }
}

int64_t SquareGather::bytes() const {
  return gathered_.bytes() + ordered_->bytes() + (all_ ? all_->bytes() : 0);
}

int64_t SquareGather::planned_bytes(const FlatLayout& whole, int64_t stride, int workers, MemoryKind device) {
  return stride * workers + all_bytes(whole) * (device == MemoryKind::kDevice ? 2 : 1);
}

StepTotals SquareGather::run(const void* own, const StepTotals& totals) {
  std::byte* const mine = gathered_.data() + group_.rank() * stride_;
  std::memcpy(mine, &totals, sizeof totals);
  if (own_bytes_ > 0) backend_.download(mine + sizeof totals, own, own_bytes_);
  group_.all_gather(
      {.data = gathered_.data(), .count = stride_ * group_.size(), .element_bytes = 1, .label = "norm"});
  auto* const ordered = static_cast<std::byte*>(ordered_->data());
  for (const Run& run : runs_)
    std::memcpy(ordered + run.to, gathered_.data() + run.from, static_cast<size_t>(run.bytes));
  if (all_) backend_.compute().copy(all_->data(), ordered, all_->bytes());
  StepTotals all, one;
  for (int rank = 0; rank < group_.size(); ++rank) {
    std::memcpy(&one, gathered_.data() + rank * stride_, sizeof one);
    all = {one.loss, one.count, all.request + one.request};
  }
  return all;
}

ParamGather::ParamGather(Group& group, Backend& backend, void* params, const FlatLayout& layout,
                         const Ownership& ownership, const DeviceReach* reach,
                         std::unique_ptr<PeerBuffers> peers)
    : group_(group),
      backend_(backend),
      reach_(reach),
      peers_(std::move(peers)),
      params_(static_cast<char*>(params)),
      element_(size_of(layout.dtype())),
      held_once_(ownership.is_shared()),
      buckets_(ownership.buckets(layout)) {
  if (backend.memory() == MemoryKind::kDevice && !peers_)
    staging_ = StagingMemory(group, backend, buckets_.bytes());
}

// The last one is not worth a hand-over to the group's thread: nothing is left to update meanwhile.
void ParamGather::start(int64_t bucket) {
  const bool last = bucket + 1 == buckets_.gradient_count();
  const Slice elements = buckets_[bucket];
  const std::string label = fmt::format("parameters, bucket {} of {}", bucket + 1, buckets_.gradient_count());
  if (peers_) {
    if (Group::Ticket ticket = between_devices(elements, label, last)) tickets_.push_back(std::move(ticket));
    return;
  }
  char* const at = params_ + elements.begin * element_;
  Gather gather{.data = at};
  if (backend_.memory() == MemoryKind::kDevice) gather = through_the_host(elements, at);
  gather.count = elements.size();
  gather.element_bytes = element_;
  gather.label = label;
  gather.held_once = held_once_;
  if (last) return group_.all_gather(gather);
  tickets_.push_back(group_.start_all_gather(gather));
}

Gather ParamGather::through_the_host(Slice elements, char* at) {
  Gather gather{.data = staging_.data()};
  Stream& stream = backend_.stream(StreamKind::kCommunication);
  const Slice mine = slice_of(elements.size(), group_.size(), group_.rank());
  const int64_t begin = mine.begin * element_, end = mine.end * element_;
  gather.before = [&stream, at, begin, end, staged = staging_.data(), ready = backend_.compute().record()] {
    stream.wait(ready);
    if (end > begin) stream.copy(staged + begin, at + begin, end - begin);
    stream.synchronize();
  };
  gather.after = [&stream, at, begin, end, all = elements.size() * element_, staged = staging_.data()] {
    if (begin > 0) stream.copy(at, staged, begin);
    if (all > end) stream.copy(at + end, staged + end, all - end);
    stream.synchronize();
  };
  return gather;
}

// Nobody updates these again before all have taken part in the next sums.
Group::Ticket ParamGather::between_devices(Slice elements, const std::string& label, bool last) {
  const auto meet = [&](const Meeting& meeting) -> Group::Ticket {
    if (!last) return group_.start_meeting(meeting);
    group_.meet(meeting);
    return nullptr;
  };
  const auto copy = [this, elements] { copy_from_peers(elements); };
  Meeting updated{
      .label = label, .before = [ready = backend_.compute().record()] { ready->wait(); }, .after = copy};
  if (!reach_->sends()) return meet(updated);
  updated.after = [this, elements] { send(elements); };
  meet(updated);
  return meet({.label = label + ", arrived", .after = [this, copy] {
                 reach_->confirm();
                 copy();
               }});
}

// To partners on other hosts, and from them.
void ParamGather::send(Slice elements) const {
  const auto piece = [&](int owner, int other) {
    const Slice own = slice_of(elements.size(), group_.size(), owner);
    return DeviceMessages::Part{other, params_ + (elements.begin + own.begin) * element_,
                                own.size() * element_};
  };
  std::vector<DeviceMessages::Part> sent, received;
  for (const RankRange& host : reach_->hosts())
    if (host != reach_->near()) sent.push_back(piece(group_.rank(), reach_->partner(host, group_.rank())));
  for (const int rank : reach_->partners()) received.push_back(piece(rank, rank));
  for (auto* parts : {&sent, &received})
    std::erase_if(*parts, [](const auto& part) { return part.bytes == 0; });
  reach_->exchange(sent, received);
}

void ParamGather::copy_from_peers(Slice elements) const {
  Stream& stream = backend_.stream(StreamKind::kCommunication);
  const RankRange& near = reach_->near();
  for (int step = 1; step < group_.size(); ++step) {
    const int rank = (group_.rank() + step) % group_.size();  // not all from the same one at once
    const int from = near.has(rank) ? rank : reach_->partner(near, rank);
    const Slice theirs = slice_of(elements.size(), group_.size(), rank);
    const int64_t first = (elements.begin + theirs.begin) * element_;
    if (theirs.size() > 0 && from != group_.rank())
      stream.copy(params_ + first, peers_->at(from, 0) + first, theirs.size() * element_);
  }
  stream.synchronize();
}

void ParamGather::finish() {
  for (const Group::Ticket& ticket : tickets_) group_.wait(ticket);
  tickets_.clear();
}

}  // namespace lockstep
