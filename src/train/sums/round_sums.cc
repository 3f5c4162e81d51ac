#include "train/sums/round_sums.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "base/error.h"

namespace lockstep {
namespace {

int64_t round_count(int64_t leaves, int64_t workers) { return (leaves + workers - 1) / workers; }

LeafRange range_of(const Group* replicas, int64_t leaves) {
  return replicas == nullptr ? LeafRange{0, leaves} : replicas->split().range(replicas->rank());
}

}  // namespace

RoundSums::RoundSums(Backend& backend, const FlatLayout& layout, const Ownership& ownership,
                     const SumTree& tree, const Groups& groups, const DeviceReach* reach,
                     const DeviceReach* between)
    : layout_(layout),
      tree_(tree),
      backend_(backend),
      group_(groups.owners),
      all_(groups.all),
      replicas_(groups.replicas),
      dtype_(layout.dtype()),
      buckets_(ownership.buckets(layout)),
      leaves_(tree.leaves()),
      range_(range_of(replicas_, leaves_)),
      rounds_(round_count(range_.size(), group_.size())),
      owned_(ownership.owned(layout)),
      totals_(backend, rounds_) {
  CarriedPieces carried{.backend = backend,
                        .group = group_,
                        .dtype = dtype_,
                        .leaves = leaves_,
                        .range = range_,
                        .replicas = replicas_};
  int64_t offset = 0;
  for (size_t b = 0; b < owned_.size(); ++b) {
    carried.buckets.push_back(buckets_[static_cast<int64_t>(b)]);
    carried.pieces.push_back(owned_[b]);
    offsets_.push_back(offset);
    offset += owned_[b].size();
  }
  const bool direct = reach != nullptr && reach->is_direct();
  carrier_ = direct ? make_device_carrier(std::move(carried), *reach) : make_host_carrier(std::move(carried));
  if (replicas_ != nullptr) left_ = replicas_->split().partials(replicas_->rank()).size();
  if (replicas_ != nullptr && between != nullptr && between->is_direct()) {
    direct_ = make_direct_exchange(*replicas_, backend_, SumOrder::kCanonical, between);
  } else if (replicas_ != nullptr && !carrier_->holds_in_host_memory()) {
    int64_t most = 1;
    for (const Slice& piece : owned_) most = std::max(most, piece.size());
    staging_ = StagingMemory(*replicas_, backend_, static_cast<int64_t>(left_) * most * size_of(dtype_));
  }
  find_stages();
}

int64_t RoundSums::sources(LeafRange range, int64_t leaves, int64_t workers, const DeviceReach& reach) {
  int64_t most = 0;
  for (int64_t round = 0; round < round_count(range.size(), workers); ++round)
    most = std::max(most, reach.sources(leaves, leaves_in(range, round, workers)));
  return kept_sums(range, leaves, workers) + most;
}

void RoundSums::find_stages() {
  int64_t bucket = 0;
  const auto entries = layout_.entries();
  for (size_t i = 0; i < entries.size(); ++i) {
    if (i + 1 < entries.size() && entries[i + 1].stage == entries[i].stage) continue;
    const int64_t end = i + 1 < entries.size() ? entries[i + 1].offset : layout_.numel();
    Stage stage{.number = entries[i].stage, .first = bucket, .stack = LeafStack(leaves_)};
    while (bucket < buckets_.count() && buckets_[bucket].begin < end) ++bucket;
    stage.end = bucket;
    stage.started = stage.summed = stage.first;
    stages_.push_back(std::move(stage));
  }
}

int64_t RoundSums::planned_bytes(const FlatLayout& layout, const Ownership& ownership, LeafRange range,
                                 int64_t leaves, MemoryKind device) {
  const int64_t owned = numel(ownership.owned(layout)) * size_of(layout.dtype());
  const int64_t slots =
      kept_sums(range, leaves, ownership.workers()) + (device == MemoryKind::kDevice ? 1 : 0);
  return slots * owned + carried_bytes(ownership.buckets(layout), layout.dtype(), ownership.workers());
}

void RoundSums::ready(int64_t round, int64_t bytes, const At& at) {
  Stage& all = stages_[0];
  for (const Slice& part : buckets_.parts()) {
    if (all.started == all.end || part.begin < buckets_[all.started].begin) continue;
    if (layout_.sums_offset(part.end) > bytes) return;
    // The memory of all but the part before it is lent out from here on.
    wait(all, 1);
    if (round + 1 == rounds_) start_between_groups(all.summed);
    int64_t end = all.started;
    while (end < all.end && buckets_[end].begin < part.end) ++end;
    start(all, end, round, at);
  }
}

void RoundSums::finish_round(Stage& stage, int64_t round) {
  start(stage, stage.end, round, {});
  wait(stage);
  if (round + 1 == rounds_) start_between_groups(stage.end);
  stage.started = stage.summed = stage.first;
  stage.round = round + 1;
  const int64_t first = range_.begin + round * group_.size();
  for (int64_t leaf = first; leaf < std::min(range_.end, first + group_.size()); ++leaf)
    stage.stack.push({leaf, leaf + 1}, [](int64_t, int64_t) {});
}

RoundSums::Stage* RoundSums::find(int stage) {
  const auto found = std::ranges::find(stages_, stage, &Stage::number);
  return found == stages_.end() ? nullptr : &*found;
}

void RoundSums::begin_leaf(int number) {
  Stage* const stage = find(number);
  if (stage != nullptr && stage->started == stage->end) finish_round(*stage, stage->round);
}

void RoundSums::end_leaf(int number, const At& at) {
  if (Stage* const stage = find(number)) start(*stage, stage->end, stage->round, at);
}

void RoundSums::finish_stages() {
  for (Stage& stage : stages_)
    while (stage.round < rounds_) finish_round(stage, stage.round);
}

void RoundSums::wait(Stage& stage, size_t under_way) {
  const auto start = std::chrono::steady_clock::now();
  for (; stage.under_way.size() > under_way; stage.under_way.pop_front()) {
    for (const Group::Ticket& ticket : stage.under_way.front().tickets) group_.wait(ticket);
    stage.summed = stage.under_way.front().end;
  }
  comm_seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void RoundSums::start(Stage& stage, int64_t end, int64_t round, const At& at) {
  Stage::Part& part = stage.under_way.emplace_back(Stage::Part{.end = end});
  for (; stage.started < end; ++stage.started) {
    const int64_t bucket = stage.started;
    const void* const from = at ? at(layout_.sums_offset(buckets_[bucket].begin)) : nullptr;
    part.tickets.push_back(
        carrier_->start(round, bucket, stage.stack, from,
                        fmt::format("gradients, bucket {} of {}", bucket + 1, buckets_.count())));
  }
}

int64_t RoundSums::finish(int64_t request) {
  const auto start = std::chrono::steady_clock::now();
  struct Told {
    int64_t request = 0;
    LossTotal total;
  };
  for (const Group::Ticket& ticket : between_) replicas_->wait(ticket);
  between_.clear();
  next_between_ = 0;
  int64_t rounds = 0;
  for (int64_t leaf = 0; leaf < leaves_; ++leaf) rounds = std::max(rounds, turn_of(leaf).round + 1);
  // An all_gather deals out whole blocks.
  const int64_t stride =
      (rounds * static_cast<int64_t>(sizeof(Told)) + kSliceBlock - 1) / kSliceBlock * kSliceBlock;
  std::vector<std::byte> all(static_cast<size_t>(stride * all_.size()));
  const auto told = [&](int rank, int64_t round) -> std::byte* {
    return all.data() + rank * stride + round * static_cast<int64_t>(sizeof(Told));
  };
  for (int64_t round = 0; round < tree_.own().size(); ++round) {
    const Told own{round == 0 ? request : 0, totals_.read(round)};
    std::memcpy(told(all_.rank(), round), &own, sizeof own);
  }
  all_.all_gather({.data = all.data(),
                   .count = static_cast<int64_t>(all.size()),
                   .element_bytes = 1,
                   .label = "loss and counts"});
  std::vector<LossTotal> leaves;
  int64_t requests = 0;
  for (int64_t leaf = 0; leaf < leaves_; ++leaf) {
    Told one;
    const Turn turn = turn_of(leaf);
    std::memcpy(&one, told(turn.rank, turn.round), sizeof one);
    leaves.push_back(one.total);
    requests += one.request;
  }
  totals_.write(0, total_of(leaves));
  for (Stage& stage : stages_) {
    stage.stack.clear();
    stage.round = 0;
  }
  carrier_->finish();
  comm_seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return requests;
}

void RoundSums::start_between_groups(int64_t until) {
  for (; replicas_ != nullptr && next_between_ < until; ++next_between_)
    if (owned_[static_cast<size_t>(next_between_)].size() > 0) start_between_groups_of(next_between_);
}

void RoundSums::start_between_groups_of(int64_t bucket) {
  const auto index = static_cast<size_t>(bucket);
  std::vector<void*> held, partials;
  for (size_t slot = 0; slot < left_; ++slot)
    held.push_back(carrier_->held(static_cast<int64_t>(slot), offsets_[index]));
  Reduction reduction{
      .type = dtype_ == DType::kBF16 ? SumType::kBF16 : SumType::kF32,
      .count = owned_[index].size(),
      .label = fmt::format("gradients of all groups, bucket {} of {}", bucket + 1, buckets_.count())};
  if (direct_) {
    between_.push_back(
        direct_->start(reduction.type, held, {.count = reduction.count, .label = reduction.label}));
    return;
  }
  if (carrier_->holds_in_host_memory()) {
    partials = held;
  } else {
    // The group runs one collective at a time, so that all of them can pass through the same memory.
    const int64_t bytes = owned_[index].size() * size_of(dtype_);
    for (size_t slot = 0; slot < left_; ++slot)
      partials.push_back(staging_.data() + static_cast<int64_t>(slot) * bytes);
    Stream& stream = backend_.stream(StreamKind::kCommunication);
    reduction.before = [&stream, held, bytes, partials] {
      for (size_t slot = 0; slot < held.size(); ++slot) stream.copy(partials[slot], held[slot], bytes);
      stream.synchronize();
    };
    reduction.after = [&stream, to = held[0], from = partials[0], bytes] {
      stream.copy(to, from, bytes);
      stream.synchronize();
    };
  }
  reduction.partials = partials;
  between_.push_back(replicas_->start_all_reduce(reduction));
}

RoundSums::Turn RoundSums::turn_of(int64_t leaf) const {
  LeafRange range = range_;
  int64_t first_rank = 0;
  for (int part = 0; replicas_ != nullptr && part < replicas_->size(); ++part) {
    range = replicas_->split().range(part);
    first_rank = part * group_.size();
    if (leaf < range.end) break;
  }
  const int64_t at = leaf - range.begin;
  return {static_cast<int>(first_rank + at % group_.size()), at / group_.size()};
}

LossTotal RoundSums::total_of(const std::vector<LossTotal>& leaves) const {
  std::vector<LossTotal> slots;
  LeafStack stack(leaves_);
  for (size_t leaf = 0; leaf < leaves.size(); ++leaf) {
    slots.push_back(leaves[leaf]);
    const auto number = static_cast<int64_t>(leaf);
    stack.push({number, number + 1}, [&](int64_t into, int64_t from) {
      LossTotal& sum = slots[static_cast<size_t>(into)];
      sum.loss += slots[static_cast<size_t>(from)].loss;
      sum.count += slots[static_cast<size_t>(from)].count;
      slots.pop_back();
    });
  }
  return slots[0];
}

}  // namespace lockstep
