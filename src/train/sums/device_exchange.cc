#include "train/sums/device_exchange.h"

#include "base/error.h"

namespace lockstep {
namespace {

DType dtype_of(SumType type) {
  switch (type) {
    case SumType::kF32: return DType::kF32;
    case SumType::kBF16: return DType::kBF16;
    default: throw InternalError("sums of {} on the device", name_of(type));
  }
}

LeafSplit split_of(const Group& group, SumOrder order) {
  return order == SumOrder::kCanonical ? group.split() : LeafSplit::one_each(group.size());
}

}  // namespace

int64_t partial_count(const Group& group, SumOrder order) { return split_of(group, order).total_partials(); }

DeviceExchange::DeviceExchange(Group& group, Backend& backend, const DeviceReach& reach, SumOrder order)
    : group_(group), backend_(backend), reach_(reach), order_(order) {
  const LeafSplit split = split_of(group, order);
  std::vector<LeafRange> all;
  for (int rank = 0; rank < group.size(); ++rank) {
    const auto& own = split.partials(rank);
    partials_.push_back(own.size());
    all.insert(all.end(), own.begin(), own.end());
  }
  merges_ = merges_of(split.leaves(), all);
}

std::unique_ptr<Buffer> DeviceExchange::allocate(int64_t bytes) {
  own_.push_back(reach_.allocate(bytes));
  return std::make_unique<HeldBuffer>(own_.back());
}

int64_t DeviceExchange::offset_of(std::span<void* const> partials) const {
  const int64_t offset = static_cast<std::byte*>(partials[0]) - peers_->at(group_.rank(), 0);
  for (size_t p = 0; p < partials.size(); ++p)
    LOCKSTEP_CHECK(at(group_.rank(), p, offset) == partials[p], "partial sum {} lies elsewhere", p);
  return offset;
}

Group::Ticket DeviceExchange::start(SumType type, std::span<void* const> partials,
                                    const BucketTransfer& bucket) {
  if (!peers_) peers_ = reach_.open(std::move(own_));
  const DType dtype = dtype_of(type);
  const bool all = bucket.whom == SumFor::kAll;
  const int64_t offset = offset_of(partials), element = size_of(dtype);
  const Slice mine = slice_of(bucket.count, group_.size(), group_.rank());
  const auto began = [began = bucket.began, ready = backend_.compute().record()] {
    if (began) began();
    ready->wait();
  };
  const auto summed = [this, dtype, mine, offset] { add_up(dtype, mine, offset); };
  const auto ended = [ended = bucket.ended] {
    if (ended) ended();
  };
  if (!all) {
    const auto own_ended = [summed, ended] {
      summed();
      ended();
    };
    Group::Ticket ticket = meet({bucket.label, began, own_ended}, bucket.last);
    // Nobody may write what others still read; other buckets are followed by the meeting of the next.
    if (bucket.last) meet({bucket.label + ", read"}, true);
    return ticket;
  }
  meet({bucket.label, began, summed}, bucket.last);
  Group::Ticket ticket = meet({.label = bucket.label + ", sums",
                               .after =
                                   [this, count = bucket.count, element, offset, ended] {
                                     copy_others(count, element, offset);
                                     ended();
                                   }},
                              bucket.last);
  if (bucket.last) meet({bucket.label + ", read"}, true);
  return ticket;
}

Group::Ticket DeviceExchange::meet(const Meeting& meeting, bool last) {
  if (!last) return group_.start_meeting(meeting);
  group_.meet(meeting);
  return nullptr;
}

void DeviceExchange::add_up(DType dtype, Slice mine, int64_t offset) {
  if (mine.size() == 0) return;
  const int64_t first = offset + mine.begin * size_of(dtype);
  SumSources sources{{}, merges_};
  for (int rank = 0; rank < group_.size(); ++rank)
    for (size_t p = 0; p < partials_[static_cast<size_t>(rank)]; ++p)
      sources.addresses.push_back(at(rank, p, first));
  reach_.sharing().sum(StreamKind::kCommunication, dtype, sources, at(group_.rank(), 0, first), mine.size());
  backend_.stream(StreamKind::kCommunication).synchronize();
}

void DeviceExchange::copy_others(int64_t count, int64_t element, int64_t offset) {
  Stream& stream = backend_.stream(StreamKind::kCommunication);
  for (int step = 1; step < group_.size(); ++step) {
    const int rank = (group_.rank() + step) % group_.size();  // not all from the same one at once
    const Slice theirs = slice_of(count, group_.size(), rank);
    const int64_t first = offset + theirs.begin * element;
    if (theirs.size() > 0)
      stream.copy(at(group_.rank(), 0, first), at(rank, 0, first), theirs.size() * element);
  }
  stream.synchronize();
}

void DeviceExchange::sum(SumType type, int64_t count, std::span<void* const> partials,
                         const std::string& label) {
  group_.all_reduce({.type = type, .count = count, .partials = partials, .order = order_, .label = label});
}

}  // namespace lockstep
