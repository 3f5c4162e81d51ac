#include "train/step/staging_ring.h"

#include <cstring>

#include "base/error.h"

namespace lockstep {

StagingRing::StagingRing(Backend& backend, int64_t slot_bytes, int slots)
    : backend_(backend), slot_bytes_(slot_bytes) {
  if (backend.memory() == MemoryKind::kHost) return;
  for (int i = 0; i < slots; ++i)
    slots_.push_back({backend.allocate(slot_bytes, MemoryKind::kPinned), nullptr});
}

void StagingRing::send(void* device, const void* host, int64_t bytes) {
  LOCKSTEP_CHECK(bytes <= slot_bytes_, "{} bytes through slots of {}", bytes, slot_bytes_);
  Stream& stream = backend_.compute();
  if (slots_.empty()) return stream.copy(device, host, bytes);
  Slot& slot = slots_[next_];
  next_ = (next_ + 1) % slots_.size();
  if (slot.copied) slot.copied->wait();
  std::memcpy(slot.memory->data(), host, static_cast<size_t>(bytes));
  stream.copy(device, slot.memory->data(), bytes);
  slot.copied = stream.record();
}

}  // namespace lockstep
