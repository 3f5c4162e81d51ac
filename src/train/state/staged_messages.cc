#include "train/state/staged_messages.h"

#include <algorithm>
#include <span>

namespace lockstep {
namespace {

constexpr int64_t kPiece = 4 << 20;  // bytes

}  // namespace

template <typename Body>
void StagedMessages::in_pieces(void* data, int64_t bytes, const Body& body) {
  auto* const at = static_cast<std::byte*>(data);
  if (in_host_memory()) return body(at, std::span(at, static_cast<size_t>(bytes)));
  if (!piece_) piece_ = backend_.allocate(kPiece, MemoryKind::kPinned);
  for (int64_t done = 0; done < bytes; done += kPiece)
    body(at + done, std::span(static_cast<std::byte*>(piece_->data()),
                              static_cast<size_t>(std::min(kPiece, bytes - done))));
}

void StagedMessages::send(Group& group, int peer, const void* from, int64_t bytes) {
  in_pieces(const_cast<void*>(from), bytes, [&](std::byte* device, std::span<std::byte> host) {
    if (!in_host_memory()) backend_.download(host.data(), device, static_cast<int64_t>(host.size()));
    group.send(peer, host);
  });
}

void StagedMessages::receive(Group& group, int peer, void* into, int64_t bytes) {
  in_pieces(into, bytes, [&](std::byte* device, std::span<std::byte> host) {
    group.receive(peer, host);
    if (!in_host_memory()) backend_.upload(device, host.data(), static_cast<int64_t>(host.size()));
  });
}

void StagedMessages::broadcast(Group& group, int root, void* data, int64_t bytes, const std::string& label) {
  in_pieces(data, bytes, [&](std::byte* device, std::span<std::byte> host) {
    const auto size = static_cast<int64_t>(host.size());
    const bool staged = !in_host_memory();
    if (staged && group.rank() == root) backend_.download(host.data(), device, size);
    group.broadcast(host, root, label);
    if (staged && group.rank() != root) backend_.upload(device, host.data(), size);
  });
}

}  // namespace lockstep
