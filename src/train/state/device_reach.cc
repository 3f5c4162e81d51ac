#include "train/state/device_reach.h"

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

PeerBuffers::PeerBuffers(Group& group, DeviceSharing& sharing, std::vector<std::shared_ptr<Buffer>> own)
    : sharing_(sharing),
      rank_(group.rank()),
      own_(std::move(own)),
      opened_(static_cast<size_t>(group.size())),
      closed_(group.allocate_for_host(group.size() * kMarkBytes, "buffers of devices")),
      ranks_(group.size()) {
  const std::string label = "buffers of devices";
  const std::array<int64_t, 1> count = {static_cast<int64_t>(own_.size())};
  const auto told = from_all(group, std::as_bytes(std::span(count)), label);
  std::vector<int64_t> counts(static_cast<size_t>(ranks_));
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
  for (int rank = 0; rank < ranks_; ++rank)
    for (int64_t i = 0; rank != rank_ && i < counts[static_cast<size_t>(rank)]; ++i)
      opened_[static_cast<size_t>(rank)].push_back(sharing_.open(std::span(all).subspan(
          static_cast<size_t>(rank * most + i) * DeviceSharing::kExportBytes, DeviceSharing::kExportBytes)));
}

PeerBuffers::~PeerBuffers() {
  opened_.clear();
  mark(closed_, rank_).store(1);
  const auto is_closed = [marks = closed_, ranks = ranks_] {
    for (int rank = 0; rank < ranks; ++rank)
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

DeviceReach::DeviceReach(Group& group, Backend& backend, DeviceRoute wanted, int64_t sources)
    : group_(group), sharing_(backend.sharing()), why_not_(first_reason(group, refusal(wanted, sources))) {
  if (is_direct()) why_not_ = first_reason(group, try_opening());
  if (wanted == DeviceRoute::kDevice && !is_direct())
    throw UserError("strategy.transport cuda_ipc: {}; use auto", why_not_);
}

std::string DeviceReach::refusal(DeviceRoute wanted, int64_t sources) {
  if (wanted == DeviceRoute::kHost) return "as strategy.transport says";
  if (sharing_ == nullptr) return "devices of this kind do not reach each other";
  const std::optional<HostPlace> host = group_.host();
  if (!host || host->count != group_.size()) return "workers are not all joined as those of one host";
  if (group_.served() != nullptr) return "Reduction Servers complete the sums";
  if (sources > static_cast<int64_t>(sharing_->most_sources()))
    return fmt::format("{} sums are added up at once, and a device adds {}", sources,
                       sharing_->most_sources());
  return try_allocation();
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
  return is_direct() ? std::string(sharing_->name()) : fmt::format("memory of the host ({})", why_not_);
}

std::unique_ptr<PeerBuffers> DeviceReach::open(std::vector<std::shared_ptr<Buffer>> own) const {
  return std::unique_ptr<PeerBuffers>(new PeerBuffers(group_, *sharing_, std::move(own)));
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
