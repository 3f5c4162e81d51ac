#include "runtime/device_reach.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>

#include "base/error.h"
#include "comm/leaf_stack.h"

namespace lockstep {
namespace {

constexpr int64_t kProbeBytes = 4096;
constexpr size_t kReasonBytes = 256;
constexpr int64_t kMarkBytes = 64;  // a cache line for each rank

// Everybody's bytes, as many of each.
std::vector<std::byte> from_all(Group& group, std::span<const std::byte> own, const std::string& label) {
  std::vector<std::byte> told, all(own.size() * static_cast<size_t>(group.size()));
  for (int rank = 0; rank < group.size(); ++rank) told.insert(told.end(), own.begin(), own.end());
  group.all_to_all(told, all, label);
  return all;
}

// The first reason that a rank has; none where nobody has one.
std::string first_reason(Group& group, const std::string& own) {
  std::array<char, kReasonBytes> text{};
  own.copy(text.data(), kReasonBytes - 1);
  const auto all = from_all(group, std::as_bytes(std::span(text)), "how devices are reached");
  for (int rank = 0; rank < group.size(); ++rank)
    if (const char* reason = reinterpret_cast<const char*>(all.data()) + rank * int64_t{kReasonBytes};
        *reason != 0)
      return reason;
  return "";
}

std::atomic_ref<uint32_t> mark(const HostBuffer& marks, int rank) {
  return std::atomic_ref(*reinterpret_cast<uint32_t*>(marks.data() + rank * kMarkBytes));
}

}  // namespace

PeerBuffers::PeerBuffers(Group& group, RankRange near, DeviceSharing& sharing,
                         std::vector<std::shared_ptr<Buffer>> own)
    : sharing_(sharing),
      near_(near),
      rank_(group.rank()),
      own_(std::move(own)),
      opened_(static_cast<size_t>(group.size())),
      closed_(group.allocate_for_host(group.size() * kMarkBytes, "buffers of devices")) {
  const std::string label = "buffers of devices";
  const std::array<int64_t, 1> count = {static_cast<int64_t>(own_.size())};
  const auto told = from_all(group, std::as_bytes(std::span(count)), label);
  std::vector<int64_t> counts(static_cast<size_t>(group.size()));
  std::memcpy(counts.data(), told.data(), told.size());
  const int64_t most = std::ranges::max(counts);
  std::vector<std::byte> exported(static_cast<size_t>(most) * DeviceSharing::kExportBytes);
  std::exception_ptr error;  // the others must not be left in the middle of this
  try {
    for (size_t i = 0; i < own_.size(); ++i)
      std::ranges::copy(sharing_.export_memory(*own_[i]), exported.data() + i * DeviceSharing::kExportBytes);
  } catch (const DeviceError&) {
    error = std::current_exception();
  }
  const auto all = from_all(group, exported, label);
  if (error) std::rethrow_exception(error);
  for (int rank = near_.first; rank < near_.end(); ++rank)
    for (int64_t i = 0; rank != rank_ && i < counts[static_cast<size_t>(rank)]; ++i)
      opened_[static_cast<size_t>(rank)].push_back(sharing_.open(std::span(all).subspan(
          static_cast<size_t>(rank * most + i) * DeviceSharing::kExportBytes, DeviceSharing::kExportBytes)));
}

PeerBuffers::~PeerBuffers() {
  opened_.clear();
  mark(closed_, rank_).store(1);
  const auto is_closed = [marks = closed_, near = near_] {
    for (int rank = near.first; rank < near.end(); ++rank)
      if (mark(marks, rank).load() == 0) return false;
    return true;
  };
  for (std::shared_ptr<Buffer>& memory : own_) sharing_.retire(std::move(memory), is_closed);
  sharing_.reap();
}

std::byte* PeerBuffers::at(int rank, size_t buffer) const {
  Buffer& memory = rank == rank_ ? *own_[buffer] : *opened_[static_cast<size_t>(rank)].at(buffer);
  return static_cast<std::byte*>(memory.data());
}

DeviceReach::DeviceReach(Group& group, Backend& backend, const DeviceWay& wanted, const Sources& sources,
                         ReachBy by)
    : group_(group), sharing_(backend.sharing()), why_not_(first_reason(group, refusal(wanted.route))) {
  const bool reads = by != ReachBy::kMessages && wanted.route != DeviceRoute::kMessages;
  const bool sends = by != ReachBy::kMemory && wanted.route != DeviceRoute::kDevice;
  stand_alone();
  if (is_direct()) {
    const std::string apart = reads ? meet_neighbours() : "";
    if (hosts_.size() > 1) {
      why_not_ = sends ? join_far(backend.messenger(), wanted.deadline)
                       : "workers are not all joined as those of one host";
      if (!is_direct() && !apart.empty()) why_not_ = sends ? fmt::format("{}; {}", apart, why_not_) : apart;
    }
  }
  if (is_direct()) {
    const int64_t most = sources(*this), has = static_cast<int64_t>(sharing_->most_sources());
    why_not_ = first_reason(
        group_,
        most <= has ? "" : fmt::format("{} sums are added up at once, and a device adds {}", most, has));
  }
  if (!is_direct()) far_ = nullptr;
  if (is_direct() || wanted.route == DeviceRoute::kAuto || wanted.route == DeviceRoute::kHost) return;
  throw UserError("strategy.transport {}: {}; use auto", name_of(wanted.route), why_not_);
}

void DeviceReach::stand_alone() {
  hosts_.clear();
  for (int rank = 0; rank < group_.size(); ++rank) hosts_.push_back({rank, 1});
}

std::string DeviceReach::refusal(DeviceRoute wanted) const {
  if (wanted == DeviceRoute::kHost) return "as strategy.transport says";
  if (sharing_ == nullptr) return "devices of this kind do not reach each other";
  if (group_.served() != nullptr) return "Reduction Servers complete the sums";
  return "";
}

// Where the workers of one host cannot, those of no host do.
std::string DeviceReach::meet_neighbours() {
  const std::optional<HostPlace> place = group_.host();
  const std::array<int, 2> own = {place ? group_.rank() - place->index : group_.rank(),
                                  place ? place->count : 1};
  const auto told = from_all(group_, std::as_bytes(std::span(own)), "how devices are reached");
  std::vector<RankRange> hosts;
  for (int rank = 0; rank < group_.size(); ++rank) {
    RankRange host;
    std::memcpy(&host, told.data() + rank * sizeof host, sizeof host);
    if (hosts.empty() || !(hosts.back() == host)) hosts.push_back(host);
  }
  if (hosts.size() == static_cast<size_t>(group_.size())) return "";
  hosts_ = std::move(hosts);
  std::string apart = first_reason(group_, try_allocation());
  if (apart.empty()) apart = first_reason(group_, try_opening());
  if (!apart.empty()) stand_alone();
  return apart;
}

std::string DeviceReach::join_far(DeviceMessenger* messenger, std::chrono::milliseconds deadline) {
  std::string reason = first_reason(
      group_, messenger == nullptr ? "devices of this kind send no messages" : messenger->why_not());
  if (!reason.empty()) return reason;
  std::vector<std::byte> invitation(DeviceMessenger::kInvitationBytes);
  if (group_.rank() == 0) try {
      invitation = messenger->invite();
    } catch (const DeviceError& error) {
      reason = error.what();
    }
  reason = first_reason(group_, reason);
  if (!reason.empty()) return reason;
  group_.broadcast(invitation, 0, "how devices are reached");
  far_ = std::make_unique<Far>();
  try {
    far_->messages = messenger->join(invitation, group_.rank(), group_.size(), deadline);
  } catch (const DeviceError& error) {
    reason = error.what();
  }
  reason = first_reason(group_, reason);
  far_name_ = messenger->name();
  for (int rank = 0; rank < group_.size(); ++rank)
    if (!near().has(rank) && partner(near(), rank) == group_.rank()) partners_.push_back(rank);
  return reason;
}

size_t DeviceReach::host_of(int rank) const {
  const auto after = std::ranges::upper_bound(hosts_, rank, {}, &RankRange::first);
  return static_cast<size_t>(after - hosts_.begin()) - 1;
}

std::vector<DeviceReach::HostSum> DeviceReach::host_sums(const RankRange& host, int64_t leaves,
                                                         const std::vector<std::vector<LeafRange>>& parts) {
  std::vector<HostSum> sums;
  LeafStack stack(leaves);
  for (int rank = host.first; rank < host.end(); ++rank) {
    const auto& own = parts[static_cast<size_t>(rank)];
    for (size_t p = 0; p < own.size(); ++p) {
      sums.push_back({own[p], {{rank, p}}});
      stack.push(own[p], [&](int64_t into, int64_t from) {
        HostSum& left = sums[static_cast<size_t>(into)];
        const HostSum& right = sums[static_cast<size_t>(from)];
        left.leaves.end = right.leaves.end;
        left.of.insert(left.of.end(), right.of.begin(), right.of.end());
        sums.pop_back();
      });
    }
  }
  return sums;
}

int64_t DeviceReach::sources(int64_t leaves, const std::vector<std::vector<LeafRange>>& parts) const {
  size_t count = 0;
  for (const RankRange& host : hosts_)
    if (host == near())
      for (int rank = host.first; rank < host.end(); ++rank) count += parts[static_cast<size_t>(rank)].size();
    else
      count += host_sums(host, leaves, parts).size();
  return static_cast<int64_t>(count);
}

void DeviceReach::exchange(std::span<const DeviceMessages::Part> sent,
                           std::span<const DeviceMessages::Part> received) const {
  if (far_->failure || (sent.empty() && received.empty())) return;
  try {
    far_->messages->exchange(sent, received);
  } catch (const DeviceError&) {
    far_->failure = std::current_exception();
  }
}

void DeviceReach::sum(DType dtype, void* data, int64_t count) const {
  if (far_->failure) return;
  try {
    far_->messages->sum(dtype, data, count);
  } catch (const DeviceError&) {
    far_->failure = std::current_exception();
  }
}

void DeviceReach::confirm() const {
  if (far_ && far_->failure) std::rethrow_exception(far_->failure);
}

// Where one worker has no memory for it, all learn of it from the reasons.
std::string DeviceReach::try_allocation() {
  try {
    probe_ = allocate(kProbeBytes);
    return "";
  } catch (const DeviceError& error) {
    return error.what();
  }
}

std::string DeviceReach::try_opening() {
  try {
    open({std::move(probe_)});
    return "";
  } catch (const DeviceError& error) {
    return error.what();
  }
}

std::string DeviceReach::text() const {
  if (!is_direct()) return fmt::format("memory of the host ({})", why_not_);
  if (!sends()) return std::string(sharing_->name());
  return !has_neighbours() ? far_name_ : fmt::format("{} and {}", sharing_->name(), far_name_);
}

std::unique_ptr<PeerBuffers> DeviceReach::open(std::vector<std::shared_ptr<Buffer>> own) const {
  return std::unique_ptr<PeerBuffers>(new PeerBuffers(group_, near(), *sharing_, std::move(own)));
}

std::vector<uint8_t> merges_of(int64_t leaves, std::span<const LeafRange> parts) {
  std::vector<uint8_t> merges;
  LeafStack stack(leaves);
  for (const LeafRange& part : parts) {
    merges.push_back(0);
    stack.push(part, [&](int64_t, int64_t) { ++merges.back(); });
  }
  return merges;
}

}  // namespace lockstep
