#include "train/sums/round_sums.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "base/error.h"
#include "comm/simd/sum_loops.h"

namespace lockstep {
namespace {

// Elements that are added up together: all sums of them stay in the nearest cache.
constexpr int64_t kChunk = 2048;

int64_t piece_elements(int64_t count, int64_t workers) {
  const int64_t blocks = (count + kFlatBlock - 1) / kFlatBlock;
  return (blocks + workers - 1) / workers * kFlatBlock;
}

int64_t transfer_bytes(const FlatLayout& layout, const Buckets& buckets, int64_t workers) {
  int64_t most = 0;
  for (int64_t b = 0; b < buckets.count(); ++b)
    most = std::max(most, piece_elements(buckets[b].size(), workers));
  return most * workers * size_of(layout.dtype());
}

int64_t round_count(int64_t leaves, int64_t workers) { return (leaves + workers - 1) / workers; }

// The most sums that an owner has after a round.
int64_t kept_sums(int64_t leaves, int64_t workers) {
  LeafStack stack(leaves);
  int64_t most = 1;
  for (int64_t leaf = 0; leaf < leaves; ++leaf) {
    stack.push({leaf, leaf + 1}, [](int64_t, int64_t) {});
    if ((leaf + 1) % workers == 0) most = std::max(most, stack.next_slot());
  }
  return most;
}

void add(DType dtype, std::byte* into, const std::byte* term, int64_t count) {
  const comm::SumLoops& loops = comm::sum_loops();
  if (dtype == DType::kF32) {
    auto* const sum = reinterpret_cast<float*>(into);
    return loops.add2_f32(sum, sum, reinterpret_cast<const float*>(term), count);
  }
  auto* const sum = reinterpret_cast<uint16_t*>(into);
  loops.add2_bf16(sum, sum, reinterpret_cast<const uint16_t*>(term), count);
}

}  // namespace

RoundSums::RoundSums(Backend& backend, const FlatLayout& layout, const Ownership& ownership,
                     const SumTree& tree, Group& group)
    : backend_(backend),
      layout_(layout),
      tree_(tree),
      group_(group),
      buckets_(ownership.buckets(layout)),
      leaves_(tree.leaves()),
      rounds_(round_count(leaves_, group.size())),
      element_(size_of(layout.dtype())),
      owned_(numel(ownership.owned(layout))),
      totals_(backend, rounds_),
      send_(group.allocate(transfer_bytes(layout, buckets_, group.size()))),
      receive_(group.allocate(send_.bytes())) {
  int64_t offset = 0;
  for (const Slice& slice : ownership.owned(layout)) {
    pieces_.push_back({slice, offset});
    offset += slice.size();
  }
  for (int64_t slot = 0; slot < kept_sums(leaves_, group.size()); ++slot)
    sums_.push_back(backend.allocate(owned_ * element_, MemoryKind::kPinned));
  scratch_.resize(static_cast<size_t>(stack_depth({0, leaves_}, leaves_) * kChunk * element_));
  if (backend.memory() == MemoryKind::kDevice) root_ = backend.allocate(owned_ * element_);
  find_stages();
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
    stage.started = stage.first;
    stages_.push_back(std::move(stage));
  }
}

int64_t RoundSums::bytes() const {
  int64_t bytes = send_.bytes() + receive_.bytes() + (root_ ? root_->bytes() : 0);
  for (const auto& sum : sums_) bytes += sum->bytes();
  return bytes;
}

int64_t RoundSums::planned_bytes(const FlatLayout& layout, const Ownership& ownership, int64_t leaves,
                                 MemoryKind device) {
  const int64_t owned = numel(ownership.owned(layout)) * size_of(layout.dtype());
  const int64_t slots = kept_sums(leaves, ownership.workers()) + (device == MemoryKind::kDevice ? 1 : 0);
  return slots * owned + 2 * transfer_bytes(layout, ownership.buckets(layout), ownership.workers());
}

std::byte* RoundSums::sum(int64_t slot, int64_t element) const {
  return static_cast<std::byte*>(sums_[static_cast<size_t>(slot)]->data()) + element * element_;
}

std::byte* RoundSums::sum_in_round(int64_t slot, int64_t element) {
  const auto kept = static_cast<int64_t>(sums_.size());
  return slot < kept ? sum(slot, element) : scratch_.data() + (slot - kept) * kChunk * element_;
}

void* RoundSums::root(size_t slice) const {
  if (!root_) return sum(0, pieces_[slice].offset);
  return static_cast<char*>(root_->data()) + pieces_[slice].offset * element_;
}

void RoundSums::ready(int64_t round, int64_t bytes, const At& at) {
  Stage& all = stages_[0];
  for (const Slice& part : buckets_.parts()) {
    if (all.started == all.end || part.begin < buckets_[all.started].begin) continue;
    if (layout_.sums_offset(part.end) > bytes) return;
    // Its memory is lent out from here on.
    wait(all);
    while (all.started < all.end && buckets_[all.started].begin < part.end) start(all, round, at);
  }
}

void RoundSums::finish_round(Stage& stage, int64_t round) {
  while (stage.started < stage.end) start(stage, round, {});
  wait(stage);
  stage.started = stage.first;
  stage.round = round + 1;
  const int64_t first = round * group_.size();
  for (int64_t leaf = first; leaf < std::min(leaves_, first + group_.size()); ++leaf)
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
  Stage* const stage = find(number);
  while (stage != nullptr && stage->started < stage->end) start(*stage, stage->round, at);
}

void RoundSums::finish_stages() {
  for (Stage& stage : stages_)
    while (stage.round < rounds_) finish_round(stage, stage.round);
}

void RoundSums::wait(Stage& stage) {
  const auto start = std::chrono::steady_clock::now();
  for (const Group::Ticket& ticket : stage.tickets) group_.wait(ticket);
  stage.tickets.clear();
  comm_seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// The group runs one collective at a time, so that all of them can pass through the same memory. Without a
// leaf what is sent means nothing, and nobody looks at it.
void RoundSums::start(Stage& stage, int64_t round, const At& at) {
  const int64_t bucket = stage.started++;
  const int64_t piece = piece_elements(buckets_[bucket].size(), group_.size()) * element_;
  const auto all = static_cast<size_t>(piece * group_.size());
  PieceExchange exchange{.send = {send_.data(), all},
                         .receive = {receive_.data(), all},
                         .label = fmt::format("gradients, bucket {} of {}", bucket + 1, buckets_.count())};
  if (at)
    exchange.before = [this, bucket, from = at(layout_.sums_offset(buckets_[bucket].begin)),
                       ready = backend_.compute().record()] {
      backend_.stream(StreamKind::kCommunication).wait(ready);
      pack(bucket, from);
    };
  exchange.after = [this, &stage, round, bucket] { add_up(stage, round, bucket); };
  stage.tickets.push_back(group_.start_exchange(exchange));
}

void RoundSums::pack(int64_t bucket, const void* from) {
  const int64_t count = buckets_[bucket].size();
  const int64_t piece = piece_elements(count, group_.size()) * element_;
  Stream& stream = backend_.stream(StreamKind::kCommunication);
  for (int rank = 0; rank < group_.size(); ++rank) {
    const Slice slice = slice_of(count, group_.size(), rank);
    if (slice.size() == 0) continue;
    stream.copy(send_.data() + rank * piece, static_cast<const char*>(from) + slice.begin * element_,
                slice.size() * element_);
  }
  stream.synchronize();
}

void RoundSums::add_up(const Stage& stage, int64_t round, int64_t bucket) {
  const Piece& mine = pieces_[static_cast<size_t>(bucket)];
  const int64_t piece = piece_elements(buckets_[bucket].size(), group_.size()) * element_;
  const int64_t first = round * group_.size();
  const DType dtype = layout_.dtype();
  for (int64_t done = 0; done < mine.elements.size(); done += kChunk) {
    const int64_t count = std::min(kChunk, mine.elements.size() - done);
    LeafStack stack = stage.stack;
    for (int64_t leaf = first; leaf < std::min(leaves_, first + group_.size()); ++leaf) {
      const std::byte* const term = receive_.data() + (leaf - first) * piece + done * element_;
      std::memcpy(sum_in_round(stack.next_slot(), mine.offset + done), term,
                  static_cast<size_t>(count * element_));
      stack.push({leaf, leaf + 1}, [&](int64_t into, int64_t from) {
        add(dtype, sum_in_round(into, mine.offset + done), sum_in_round(from, mine.offset + done), count);
      });
    }
  }
}

int64_t RoundSums::finish(int64_t request) {
  const auto start = std::chrono::steady_clock::now();
  struct Told {
    int64_t request = 0;
    LossTotal total;
  };
  // An all_gather deals out whole blocks.
  const int64_t stride =
      (rounds_ * static_cast<int64_t>(sizeof(Told)) + kSliceBlock - 1) / kSliceBlock * kSliceBlock;
  std::vector<std::byte> all(static_cast<size_t>(stride * group_.size()));
  const auto told = [&](int rank, int64_t round) -> std::byte* {
    return all.data() + rank * stride + round * static_cast<int64_t>(sizeof(Told));
  };
  for (int64_t round = 0; round < tree_.own().size(); ++round) {
    const Told own{round == 0 ? request : 0, totals_.read(round)};
    std::memcpy(told(group_.rank(), round), &own, sizeof own);
  }
  group_.all_gather({.data = all.data(),
                     .count = static_cast<int64_t>(all.size()),
                     .element_bytes = 1,
                     .label = "loss and counts"});
  std::vector<LossTotal> leaves;
  int64_t requests = 0;
  for (int64_t leaf = 0; leaf < leaves_; ++leaf) {
    Told one;
    std::memcpy(&one, told(static_cast<int>(leaf % group_.size()), leaf / group_.size()), sizeof one);
    leaves.push_back(one.total);
    requests += one.request;
  }
  totals_.write(0, total_of(leaves));
  for (Stage& stage : stages_) {
    stage.stack.clear();
    stage.round = 0;
  }
  if (root_) backend_.compute().copy(root_->data(), sums_[0]->data(), root_->bytes());
  comm_seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return requests;
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
