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

std::vector<std::vector<LeafRange>> partials_of(const Group& group, SumOrder order) {
  const LeafSplit split = split_of(group, order);
  std::vector<std::vector<LeafRange>> parts;
  for (int rank = 0; rank < group.size(); ++rank) parts.push_back(split.partials(rank));
  return parts;
}

int64_t exchange_sources(const Group& group, SumOrder order, const DeviceReach& reach) {
  return reach.sources(split_of(group, order).leaves(), partials_of(group, order));
}

DeviceExchange::DeviceExchange(Group& group, Backend& backend, const DeviceReach& reach, SumOrder order)
    : group_(group),
      backend_(backend),
      reach_(reach),
      order_(order),
      sums_(group, backend, reach),
      shares_{.leaves = split_of(group, order).leaves(), .parts = partials_of(group, order)} {}

std::unique_ptr<Buffer> DeviceExchange::allocate(int64_t bytes) {
  own_.push_back(reach_.allocate(bytes));
  return std::make_unique<HeldBuffer>(own_.back());
}

std::byte* DeviceExchange::at(const Moved& moved, int rank, size_t partial) const {
  if (rank == group_.rank()) return static_cast<std::byte*>(moved.own[partial]);
  return peers_->at(rank, partial) + moved.offset;
}

int64_t DeviceExchange::offset_of(std::span<void* const> partials) {
  if (!reach_.has_neighbours()) return 0;
  if (!peers_) peers_ = reach_.open(std::move(own_));
  const int64_t offset = static_cast<std::byte*>(partials[0]) - peers_->at(group_.rank(), 0);
  for (size_t p = 0; p < partials.size(); ++p)
    LOCKSTEP_CHECK(peers_->at(group_.rank(), p) + offset == partials[p], "partial sum {} lies elsewhere", p);
  return offset;
}

Group::Ticket DeviceExchange::start(SumType type, std::span<void* const> partials,
                                    const BucketTransfer& bucket) {
  const bool all = bucket.whom == SumFor::kAll;
  const bool copies = all && reach_.has_neighbours();
  auto moved = std::make_shared<Moved>(
      Moved{dtype_of(type), bucket.count, offset_of(partials), {partials.begin(), partials.end()}, {}});
  for (int rank = 0; rank < group_.size(); ++rank)
    moved->slices.push_back(slice_of(bucket.count, group_.size(), rank));
  const auto began = [began = bucket.began, ready = backend_.compute().record()] {
    if (began) began();
    ready->wait();
  };
  const auto ended = [ended = bucket.ended] {
    if (ended) ended();
  };
  // What a library adds up by itself is nobody's order.
  const bool by_library = reach_.sends() && all && order_ == SumOrder::kFast;
  Meeting summed{bucket.label, began, [this, all, by_library, moved] {
                   if (by_library) return reach_.sum(moved->dtype, moved->own[0], moved->count);
                   add_up(*moved);
                   if (all) send_sums(*moved);
                 }};
  Group::Ticket ticket;
  if (all || reach_.sends()) {
    meet(summed, bucket.last);
    ticket = meet({.label = bucket.label + ", sums",
                   .after =
                       [this, copies, by_library, moved, ended] {
                         reach_.confirm();
                         if (copies && !by_library) copy_sums(*moved);
                         ended();
                       }},
                  bucket.last);
  } else {
    summed.after = [sum = summed.after, ended] {
      sum();
      ended();
    };
    ticket = meet(summed, bucket.last);
  }
  // Nobody may write what neighbours still read; other buckets are followed by the meeting of the next.
  if (bucket.last && (copies || !reach_.sends())) meet({bucket.label + ", read"}, true);
  return ticket;
}

Group::Ticket DeviceExchange::meet(const Meeting& meeting, bool last) {
  if (!last) return group_.start_meeting(meeting);
  group_.meet(meeting);
  return nullptr;
}

void DeviceExchange::add_up(const Moved& moved) {
  shares_.slices = moved.slices;
  const auto parts =
      sums_.bring(moved.dtype, shares_, [&](int rank, size_t p) { return at(moved, rank, p); });
  const Slice& mine = moved.slices[static_cast<size_t>(group_.rank())];
  sums_.add_up(moved.dtype, shares_.leaves, parts,
               at(moved, group_.rank(), 0) + mine.begin * size_of(moved.dtype), mine.size());
  backend_.stream(StreamKind::kCommunication).synchronize();
}

// Of slices, to where they belong: those of workers whose partner this one is come here.
void DeviceExchange::send_sums(const Moved& moved) const {
  if (!reach_.sends()) return;
  const int self = group_.rank();
  const auto slice = [&](int owner, int other) {
    const Slice& of = moved.slices[static_cast<size_t>(owner)];
    const int64_t element = size_of(moved.dtype);
    return DeviceMessages::Part{other, at(moved, self, 0) + of.begin * element, of.size() * element};
  };
  std::vector<DeviceMessages::Part> sent, received;
  for (const RankRange& host : reach_.hosts())
    if (host != reach_.near()) sent.push_back(slice(self, reach_.partner(host, self)));
  for (const int rank : reach_.partners()) received.push_back(slice(rank, rank));
  for (auto* parts : {&sent, &received})
    std::erase_if(*parts, [](const auto& part) { return part.bytes == 0; });
  reach_.exchange(sent, received);
}

void DeviceExchange::copy_sums(const Moved& moved) const {
  Stream& stream = backend_.stream(StreamKind::kCommunication);
  const int64_t element = size_of(moved.dtype);
  for (int step = 1; step < group_.size(); ++step) {
    const int rank = (group_.rank() + step) % group_.size();  // not all from the same one at once
    const int from = reach_.near().has(rank) ? rank : reach_.partner(reach_.near(), rank);
    const Slice& theirs = moved.slices[static_cast<size_t>(rank)];
    if (theirs.size() == 0 || from == group_.rank()) continue;
    const int64_t first = theirs.begin * element;
    stream.copy(at(moved, group_.rank(), 0) + first, at(moved, from, 0) + first, theirs.size() * element);
  }
  stream.synchronize();
}

void DeviceExchange::sum(SumType type, int64_t count, std::span<void* const> partials,
                         const std::string& label) {
  group_.all_reduce({.type = type, .count = count, .partials = partials, .order = order_, .label = label});
}

}  // namespace lockstep
