#include "runtime/collective_steps.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.h"

namespace lockstep {
namespace {

SumType sum_type(const Transfer& transfer) {
  return transfer.staged == DType::kF32 ? SumType::kF32 : SumType::kI64;
}

bool sums(const Transfer& transfer) {
  return transfer.kind == CollectiveKind::kAllReduce || transfer.kind == CollectiveKind::kReduceScatter;
}

int64_t own_piece(const Transfer& transfer, int rank) {
  return rank * transfer.operand.stride * size_of(transfer.staged);
}

int64_t operand_at(const Transfer& transfer, int rank) {
  return transfer.kind == CollectiveKind::kAllGather ? own_piece(transfer, rank) : 0;
}

int64_t result_at(const Transfer& transfer, int rank) {
  return transfer.kind == CollectiveKind::kReduceScatter ? own_piece(transfer, rank) : transfer.result_at;
}

int64_t elements(const PieceLayout& layout) { return layout.pieces * layout.stride; }
size_t bytes(const Transfer& transfer, const PieceLayout& layout) {
  return static_cast<size_t>(elements(layout) * size_of(transfer.staged));
}

// Begins the transfer, or where nothing is computed before its done, runs it and returns no ticket.
Group::Ticket start_transfer(Group& group, const Transfer& transfer, std::byte* place) {
  const auto call = [&](auto start, auto run, const auto&... arguments) -> Group::Ticket {
    if (!transfer.alone) return (group.*start)(arguments...);
    (group.*run)(arguments...);
    return nullptr;
  };
  const std::array<void*, 1> partials = {place};
  const Reduction reduction{.type = sum_type(transfer),
                            .count = elements(transfer.operand),
                            .partials = partials,
                            .label = transfer.label};
  const Gather gather{place, elements(transfer.result), size_of(transfer.staged), transfer.label};
  const std::span<const std::byte> operand(place, bytes(transfer, transfer.operand));
  const std::span<std::byte> result(place + transfer.result_at, bytes(transfer, transfer.result));
  switch (transfer.kind) {
    case CollectiveKind::kAllReduce: return call(&Group::start_all_reduce, &Group::all_reduce, reduction);
    case CollectiveKind::kReduceScatter:
      return call(&Group::start_reduce_scatter, &Group::reduce_scatter, reduction);
    case CollectiveKind::kAllGather: return call(&Group::start_all_gather, &Group::all_gather, gather);
    case CollectiveKind::kBroadcast:
      return call(&Group::start_broadcast, &Group::broadcast, result, transfer.root, transfer.label);
    case CollectiveKind::kAllToAll:
      return call(&Group::start_all_to_all, &Group::all_to_all, operand, result, transfer.label);
    case CollectiveKind::kSend: return call(&Group::start_send, &Group::send, transfer.peer, operand);
    case CollectiveKind::kReceive: return call(&Group::start_receive, &Group::receive, transfer.peer, result);
    default: throw InternalError("{} in a plan", name_of(transfer.kind));
  }
}

}  // namespace

CollectiveSteps::CollectiveSteps(const TransferPlan& plan, size_t nodes, Backend& backend)
    : plan_(plan), backend_(backend), transfer_of_(nodes, -1), tickets_(plan.transfers.size()) {
  for (size_t i = 0; i < plan.transfers.size(); ++i) {
    transfer_of_[static_cast<size_t>(plan.transfers[i].start)] = static_cast<int32_t>(i);
    transfer_of_[static_cast<size_t>(plan.transfers[i].done)] = static_cast<int32_t>(i);
  }
}

void CollectiveSteps::bind(std::string_view name, Group& group, DeviceTransfers* devices) {
  const auto wanted = plan_.buffers.find(std::string(name));
  if (wanted == plan_.buffers.end()) return;
  bool through_the_host = false;
  for (const Transfer& transfer : plan_.transfers) {
    if (transfer.group != name) continue;
    LOCKSTEP_CHECK(transfer.size == group.size(), "{} is for {} ranks, group {} has {}", transfer.label,
                   transfer.size, name, group.size());
    LOCKSTEP_CHECK(!sums(transfer) || group.split().leaves() == group.size(),
                   "{} sums one leaf per rank, group {} has {}", transfer.label, name, group.split().text());
    through_the_host |= devices == nullptr || !DeviceTransfers::moves(transfer);
  }
  if (devices != nullptr) devices->reserve(wanted->second);
  groups_.insert_or_assign(std::string(name),
                           Bound{&group, devices, group.allocate(through_the_host ? wanted->second : 0)});
}

void CollectiveSteps::require_bound() const {
  for (const auto& [name, bytes] : plan_.buffers)
    LOCKSTEP_CHECK(groups_.contains(name), "no group {} is bound for the collectives over it", name);
}

void CollectiveSteps::run(int32_t node, std::span<void* const> inputs, std::span<void* const> outputs,
                          Stream& stream) {
  const auto index = static_cast<size_t>(transfer_of_[static_cast<size_t>(node)]);
  const Transfer& transfer = plan_.transfers[index];
  if (transfer.bytes == 0) return;  // an empty tensor: everybody knows
  DeviceTransfers* const devices = groups_.find(transfer.group)->second.devices;
  if (devices != nullptr && DeviceTransfers::moves(transfer))
    return node == transfer.start ? devices->start(transfer, inputs[0])
                                  : devices->finish(transfer, outputs[0]);
  if (node == transfer.start) return start(index, inputs, stream);
  finish(index, outputs[0]);
}

void CollectiveSteps::start(size_t index, std::span<void* const> inputs, Stream& stream) {
  const Transfer& transfer = plan_.transfers[index];
  Group& group = *groups_.at(transfer.group).group;
  std::byte* place = place_of(transfer);
  stream.synchronize();
  if (transfer.kind != CollectiveKind::kReceive)
    pack_operand(transfer, inputs[0], place + operand_at(transfer, group.rank()));
  tickets_[index] = start_transfer(group, transfer, place);
}

void CollectiveSteps::finish(size_t index, void* result) {
  const Transfer& transfer = plan_.transfers[index];
  Group& group = *groups_.at(transfer.group).group;
  if (const Group::Ticket ticket = std::exchange(tickets_[index], nullptr)) group.wait(ticket);
  if (transfer.kind == CollectiveKind::kSend) return;  // its token has no bytes
  std::byte* place = place_of(transfer);
  const bool kept = !sums(transfer) || transfer.root < 0 || transfer.root == group.rank();
  if (!kept) std::fill_n(place, transfer.bytes, std::byte{0});
  unpack_result(transfer, place + result_at(transfer, group.rank()), result);
}

std::byte* CollectiveSteps::place_of(const Transfer& transfer) {
  return groups_.at(transfer.group).buffer.data() + transfer.offset;
}

void CollectiveSteps::pack_operand(const Transfer& transfer, const void* tensor, std::byte* operand) {
  if (backend_.memory() == MemoryKind::kHost) return pack(transfer, tensor, operand);
  host_copy_.resize(
      static_cast<size_t>(transfer.operand.pieces * transfer.operand.piece() * size_of(transfer.dtype)));
  backend_.download(host_copy_.data(), tensor, static_cast<int64_t>(host_copy_.size()));
  pack(transfer, host_copy_.data(), operand);
}

void CollectiveSteps::unpack_result(const Transfer& transfer, const std::byte* result, void* tensor) {
  if (backend_.memory() == MemoryKind::kHost) return unpack(transfer, result, tensor);
  host_copy_.resize(
      static_cast<size_t>(transfer.result.pieces * transfer.result.piece() * size_of(transfer.dtype)));
  unpack(transfer, result, host_copy_.data());
  backend_.upload(tensor, host_copy_.data(), static_cast<int64_t>(host_copy_.size()));
}

}  // namespace lockstep
