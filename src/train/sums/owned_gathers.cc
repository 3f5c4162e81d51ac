#include "train/sums/owned_gathers.h"

#include <algorithm>
#include <cstring>

#include "ops/norm_parts.h"

namespace lockstep {
namespace {

int64_t part_bytes(const std::vector<Slice>& owned) { return numel(owned) / kFlatBlock * kNormPartBytes; }

// An all_gather deals out whole blocks: so many bytes for everybody, that those of the owner of most fit.
int64_t stride_of(const FlatLayout& layout, const Ownership& ownership) {
  int64_t most = 0;
  for (int rank = 0; rank < ownership.workers(); ++rank)
    most = std::max(most, part_bytes(ownership.owned_by(rank, layout)));
  return (most + kSliceBlock - 1) / kSliceBlock * kSliceBlock;
}

int64_t all_bytes(const FlatLayout& layout) { return layout.numel() / kFlatBlock * kNormPartBytes; }

}  // namespace

SquareGather::SquareGather(Group& group, Backend& backend, const FlatLayout& layout,
                           const Ownership& ownership)
    : group_(group),
      backend_(backend),
      stride_(stride_of(layout, ownership)),
      own_bytes_(part_bytes(ownership.owned(layout))),
      gathered_(group.allocate(stride_ * group.size())),
      ordered_(backend.allocate(all_bytes(layout), MemoryKind::kPinned)),
      all_(backend.memory() == MemoryKind::kDevice ? backend.allocate(all_bytes(layout)) : nullptr) {
  for (int rank = 0; rank < group.size(); ++rank) {
    int64_t from = rank * stride_;
    for (const Slice& slice : ownership.owned_by(rank, layout)) {
      const int64_t bytes = slice.size() / kFlatBlock * kNormPartBytes;
      if (bytes > 0) runs_.push_back({from, slice.begin / kFlatBlock * kNormPartBytes, bytes});
      from += bytes;
    }
  }
}

int64_t SquareGather::bytes() const {
  return gathered_.bytes() + ordered_->bytes() + (all_ ? all_->bytes() : 0);
}

int64_t SquareGather::planned_bytes(const FlatLayout& layout, const Ownership& ownership, MemoryKind device) {
  return stride_of(layout, ownership) * ownership.workers() +
         all_bytes(layout) * (device == MemoryKind::kDevice ? 2 : 1);
}

void SquareGather::run(const void* own) {
  std::byte* const mine = gathered_.data() + group_.rank() * stride_;
  if (own_bytes_ > 0) backend_.download(mine, own, own_bytes_);
  group_.all_gather(
      {.data = gathered_.data(), .count = stride_ * group_.size(), .element_bytes = 1, .label = "norm"});
  auto* const ordered = static_cast<std::byte*>(ordered_->data());
  for (const Run& run : runs_)
    std::memcpy(ordered + run.to, gathered_.data() + run.from, static_cast<size_t>(run.bytes));
  if (all_) backend_.compute().copy(all_->data(), ordered, all_->bytes());
}

ParamGather::ParamGather(Group& group, Backend& backend, void* params, const FlatLayout& layout,
                         const Ownership& ownership)
    : group_(group),
      backend_(backend),
      params_(static_cast<char*>(params)),
      element_(size_of(layout.dtype())),
      held_once_(ownership.is_shared()),
      buckets_(ownership.buckets(layout)) {
  if (backend.memory() == MemoryKind::kDevice) staging_ = group.allocate(buckets_.bytes());
}

void ParamGather::start(int64_t bucket) {
  const Slice elements = buckets_[bucket];
  char* const at = params_ + elements.begin * element_;
  Gather gather{.data = at,
                .count = elements.size(),
                .element_bytes = element_,
                .label = fmt::format("parameters, bucket {} of {}", bucket + 1, buckets_.gradient_count()),
                .held_once = held_once_};
  if (backend_.memory() == MemoryKind::kDevice) {
    gather.data = staging_.data();
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
  }
  // The last one is not worth a hand-over to the group's thread: nothing is left to update meanwhile.
  if (bucket + 1 == buckets_.gradient_count())
    group_.all_gather(gather);
  else
    tickets_.push_back(group_.start_all_gather(gather));
}

void ParamGather::finish() {
  for (const Group::Ticket& ticket : tickets_) group_.wait(ticket);
  tickets_.clear();
}

}  // namespace lockstep
