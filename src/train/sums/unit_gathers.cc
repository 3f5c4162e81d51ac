#include "train/sums/unit_gathers.h"

#include <algorithm>
#include <chrono>
#include <cstring>

namespace lockstep {

std::vector<ParamUnit> param_units(const FlatLayout& layout, const Buckets& buckets) {
  std::vector<ParamUnit> units;
  for (const Slice& slice : buckets.units()) {
    ParamUnit& unit = units.emplace_back();
    unit.numel = slice.size();
    unit.dtype = layout.dtype();
    for (const FlatEntry& entry : layout.entries())
      if (entry.offset >= slice.begin && entry.offset < slice.end)
        unit.parts.push_back({entry.name, entry.offset - slice.begin});
  }
  return units;
}

std::vector<ParamUnit> param_units(const FlatLayout& layout, const Ownership& ownership) {
  return ownership.splits_params() ? param_units(layout, ownership.buckets(layout))
                                   : std::vector<ParamUnit>{};
}

UnitGathers::UnitGathers(Group& group, Backend& backend, const void* owned, const FlatLayout& layout,
                         const Ownership& ownership, const DeviceReach* reach,
                         std::unique_ptr<PeerBuffers> peers)
    : group_(group),
      backend_(backend),
      reach_(reach),
      peers_(std::move(peers)),
      owned_(static_cast<const char*>(owned)),
      element_(size_of(layout.dtype())) {
  const Buckets buckets = ownership.buckets(layout);
  units_ = buckets.units();
  pieces_.resize(units_.size());
  const std::vector<Slice> own = ownership.owned(layout);
  size_t unit = 0;
  int64_t held = 0;
  for (int64_t b = 0; b < buckets.gradient_count(); ++b) {
    while (buckets[b].begin >= units_[unit].end) ++unit;
    pieces_[unit].push_back({buckets[b], own[static_cast<size_t>(b)], held});
    held += own[static_cast<size_t>(b)].size();
  }
  if (peers_) {
    find_peer_pieces(layout, ownership);
    if (reach_->sends() && reach_->has_neighbours()) {
      int64_t most = 1;
      for (const Slice& one : units_) most = std::max(most, one.size() * element_);
      arrived_ = reach_->open({reach_->allocate(most)});
    }
  } else if (const int64_t bytes = planned_bytes(layout, ownership, backend.memory()); bytes > 0)
    staging_ = StagingMemory(group, backend, bytes);
}

void UnitGathers::find_peer_pieces(const FlatLayout& layout, const Ownership& ownership) {
  const Buckets buckets = ownership.buckets(layout);
  peer_pieces_.resize(units_.size());
  for (int step = 0; step < group_.size(); ++step) {
    const int rank = (group_.rank() + step) % group_.size();  // not all from the same one at once
    const std::vector<Slice> owned = ownership.owned_by(rank, layout);
    size_t unit = 0;
    int64_t held = 0;
    for (int64_t b = 0; b < buckets.gradient_count(); ++b) {
      while (buckets[b].begin >= units_[unit].end) ++unit;
      const Slice& own = owned[static_cast<size_t>(b)];
      if (own.size() > 0) peer_pieces_[unit].push_back({own, held, rank});
      held += own.size();
    }
  }
}

int64_t UnitGathers::planned_bytes(const FlatLayout& layout, const Ownership& ownership, MemoryKind device) {
  return device == MemoryKind::kDevice ? ownership.buckets(layout).bytes() : 0;
}

void UnitGathers::start(int64_t unit, void* into, bool from_the_end) {
  const auto index = static_cast<size_t>(unit);
  std::vector<UnderWay>& under_way = under_way_[unit];
  const std::string label = fmt::format("parameters, unit {} of {}", unit + 1, units_.size());
  if (peers_)
    return under_way.push_back(
        {0, units_[index].size() * element_, between_devices(index, static_cast<char*>(into), label)});
  const std::vector<Piece>& pieces = pieces_[index];
  for (size_t i = 0; i < pieces.size(); ++i) {
    const Piece& piece = pieces[from_the_end ? pieces.size() - 1 - i : i];
    const int64_t begin = (piece.bucket.begin - units_[index].begin) * element_;
    const Group::Ticket ticket = start(piece, static_cast<char*>(into) + begin, label);
    under_way.push_back({begin, begin + piece.bucket.size() * element_, ticket});
  }
}

Group::Ticket UnitGathers::start(const Piece& piece, char* at, const std::string& label) {
  const char* const from = owned_ + piece.held * element_;
  const int64_t begin = (piece.own.begin - piece.bucket.begin) * element_;
  const int64_t bytes = piece.own.size() * element_, all = piece.bucket.size() * element_;
  Gather gather{.data = at, .count = piece.bucket.size(), .element_bytes = element_, .label = label};
  if (backend_.memory() == MemoryKind::kHost) {
    if (bytes > 0) std::memcpy(at + begin, from, static_cast<size_t>(bytes));
  } else {
    // The group runs one collective at a time, so that all of them can pass through the same memory.
    gather.data = staging_.data();
    Stream& stream = backend_.stream(StreamKind::kCommunication);
    gather.before = [&stream, from, begin, bytes, staged = staging_.data(),
                     ready = backend_.compute().record()] {
      stream.wait(ready);
      if (bytes > 0) stream.copy(staged + begin, from, bytes);
      stream.synchronize();
    };
    gather.after = [&stream, at, all, staged = staging_.data()] {
      stream.copy(at, staged, all);
      stream.synchronize();
    };
  }
  return group_.start_all_gather(gather);
}

// Nobody updates these before all have taken part in the sums of this step.
Group::Ticket UnitGathers::between_devices(size_t unit, char* into, const std::string& label) {
  Meeting final{.label = label,
                .before = [ready = backend_.compute().record()] { ready->wait(); },
                .after = [this, unit, into] { copy_from_peers(unit, into); }};
  if (!reach_->sends()) return group_.start_meeting(final);
  final.after = [this, unit, into] { send(unit, into); };
  group_.start_meeting(final);
  return group_.start_meeting({.label = label + ", arrived", .after = [this, unit, into] {
                                 reach_->confirm();
                                 copy_from_peers(unit, into);
                               }});
}

void UnitGathers::send(size_t unit, char* into) const {
  const int self = group_.rank();
  char* const arrived = arrived_ ? reinterpret_cast<char*>(arrived_->at(self, 0)) : into;
  std::vector<DeviceMessages::Part> sent, received;
  for (const PeerPiece& piece : peer_pieces_[unit]) {
    const int64_t bytes = piece.own.size() * element_;
    if (piece.rank == self) {
      for (const RankRange& host : reach_->hosts())
        if (host != reach_->near())
          sent.push_back(
              {reach_->partner(host, self), const_cast<char*>(owned_) + piece.held * element_, bytes});
    } else if (!reach_->near().has(piece.rank) && reach_->partner(reach_->near(), piece.rank) == self) {
      received.push_back({piece.rank, arrived + (piece.own.begin - units_[unit].begin) * element_, bytes});
    }
  }
  reach_->exchange(sent, received);
}

void UnitGathers::copy_from_peers(size_t unit, char* into) const {
  Stream& stream = backend_.stream(StreamKind::kCommunication);
  for (const PeerPiece& piece : peer_pieces_[unit]) {
    const int64_t offset = (piece.own.begin - units_[unit].begin) * element_;
    const int64_t bytes = piece.own.size() * element_;
    if (reach_->near().has(piece.rank))
      stream.copy(into + offset, peers_->at(piece.rank, 0) + piece.held * element_, bytes);
    else if (arrived_)
      stream.copy(into + offset, arrived_->at(reach_->partner(reach_->near(), piece.rank), 0) + offset,
                  bytes);
  }
  stream.synchronize();
}

void UnitGathers::wait(int64_t unit, int64_t begin, int64_t end) {
  const auto start = std::chrono::steady_clock::now();
  std::erase_if(under_way_[unit], [&](const UnderWay& piece) {
    if (piece.end <= begin || piece.begin >= end) return false;
    group_.wait(piece.ticket);
    return true;
  });
  seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace lockstep
