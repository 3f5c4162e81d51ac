#include "runtime/device_transfers.h"

#include "base/error.h"

namespace lockstep {
namespace {

int64_t operand_bytes(const Transfer& transfer) {
  return transfer.operand.pieces * transfer.operand.piece() * size_of(transfer.dtype);
}

// A leaf of each rank.
std::vector<LeafRange> ranks_of(const Group& group) {
  std::vector<LeafRange> ranks;
  for (int64_t rank = 0; rank < group.size(); ++rank) ranks.push_back({rank, rank + 1});
  return ranks;
}

}  // namespace

std::unique_ptr<DeviceTransfers> DeviceTransfers::between(Group& group, Backend& backend,
                                                          const DeviceWay& way) {
  if (backend.memory() == MemoryKind::kHost) return nullptr;
  if (way.route != DeviceRoute::kAuto && way.route != DeviceRoute::kDevice) return nullptr;
  auto transfers = std::unique_ptr<DeviceTransfers>(new DeviceTransfers(group, backend, way));
  return transfers->reach_.is_direct() ? std::move(transfers) : nullptr;
}

DeviceTransfers::DeviceTransfers(Group& group, Backend& backend, const DeviceWay& way)
    : group_(group),
      backend_(backend),
      reach_(
          group, backend, way, [&](const DeviceReach&) { return int64_t{group.size()}; }, ReachBy::kMemory),
      merges_(merges_of(group.size(), ranks_of(group))) {}

// Sums of floats, and tensors that lie behind each other.
bool DeviceTransfers::moves(const Transfer& transfer) {
  const bool is_whole = transfer.operand.pieces == 1 && transfer.operand.outer == 1;
  if (transfer.kind == CollectiveKind::kAllReduce)
    return is_whole && transfer.root < 0 && (transfer.dtype == DType::kF32 || transfer.dtype == DType::kBF16);
  return transfer.kind == CollectiveKind::kAllGather && is_whole && transfer.result.outer == 1;
}

std::byte* DeviceTransfers::place(int rank, size_t set, const Transfer& transfer) const {
  return places_->at(rank, set) + transfer.offset;
}

void DeviceTransfers::open() {
  LOCKSTEP_CHECK(under_way_.empty(), "room for more transfers while {} are under way", under_way_.size());
  opened_ = wanted_;
  places_ = reach_.open({reach_.allocate(opened_), reach_.allocate(opened_)});
}

void DeviceTransfers::meet_again() {
  group_.meet({.label = "read", .before = [ready = backend_.compute().record()] { ready->wait(); }});
  met_ = ++started_;
}

void DeviceTransfers::start(const Transfer& transfer, const void* operand) {
  if (opened_ < wanted_) open();
  const size_t set = next_set_++ % 2;
  if (read_[set] > 0 && met_ <= read_[set]) meet_again();
  backend_.compute().copy(place(group_.rank(), set, transfer), operand, operand_bytes(transfer));
  const Meeting meeting{.label = transfer.label,
                        .before = [ready = backend_.compute().record()] { ready->wait(); }};
  UnderWay& under_way = under_way_[&transfer] = {set, ++started_};
  if (transfer.alone)
    group_.meet(meeting);
  else
    under_way.ticket = group_.start_meeting(meeting);
}

void DeviceTransfers::finish(const Transfer& transfer, void* result) {
  const auto found = under_way_.find(&transfer);
  LOCKSTEP_CHECK(found != under_way_.end(), "{} has not been started", transfer.label);
  const UnderWay under_way = found->second;
  under_way_.erase(found);
  if (under_way.ticket) group_.wait(under_way.ticket);
  met_ = std::max(met_, under_way.meeting);
  read_[under_way.set] = started_;
  const int64_t bytes = operand_bytes(transfer);
  if (transfer.kind == CollectiveKind::kAllGather) {
    for (int rank = 0; rank < group_.size(); ++rank)
      backend_.compute().copy(static_cast<std::byte*>(result) + rank * bytes,
                              place(rank, under_way.set, transfer), bytes);
    return;
  }
  SumSources sources{.addresses = {}, .merges = merges_, .rounds_nodes = false};
  for (int rank = 0; rank < group_.size(); ++rank)
    sources.addresses.push_back(place(rank, under_way.set, transfer));
  reach_.sharing().sum(StreamKind::kCompute, transfer.dtype, sources, result,
                       bytes / size_of(transfer.dtype));
}

}  // namespace lockstep
