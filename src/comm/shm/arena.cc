#include "comm/shm/arena.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>

#include "base/available_memory.h"
#include "base/does_not_fit.h"
#include "base/number_text.h"

namespace lockstep::shm {
namespace {

// What can be allocated without pushing something else out. The kernel would not refuse a shared file more
// than that; it would kill somebody later.
int64_t room() {
  const int64_t available = available_memory_bytes();
  return available > 0 ? available : std::numeric_limits<int64_t>::max();
}

}  // namespace

Arena::Arena(std::shared_ptr<Segment> segment) : segment_(std::move(segment)) {
  free_[segment_->arena_offset()] = segment_->bytes() - segment_->arena_offset();
}

std::byte* Arena::allocate(int64_t bytes) {
  const std::lock_guard lock(mutex_);
  const int64_t size = std::max(kPage, (bytes + kPage - 1) / kPage * kPage);
  const int64_t available = room();
  const auto found =
      std::find_if(free_.begin(), free_.end(), [&](const auto& p) { return p.second >= size; });
  if (size > available || found == free_.end())
    throw DoesNotFit(
        "no room for {} of shared memory: {} are available; use fewer workers or a smaller model",
        bytes_text(bytes), bytes_text(available));
  const auto [offset, room] = *found;
  if (fallocate(segment_->fd(), 0, offset, size) != 0)
    throw DoesNotFit("no room for {} of shared memory: {}", bytes_text(bytes), std::strerror(errno));
  free_.erase(found);
  if (room > size) free_[offset + size] = room - size;
  used_[offset] = size;
  return segment_->at(offset);
}

void Arena::release(std::byte* memory) noexcept {
  const std::lock_guard lock(mutex_);
  const auto used = used_.find(segment_->offset_of(memory));
  if (used == used_.end()) return;
  auto [offset, size] = *used;
  used_.erase(used);
  // Errors leave the memory in use until the segment goes; nothing else depends on it.
  (void)fallocate(segment_->fd(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, size);
  auto after = free_.lower_bound(offset);
  if (after != free_.end() && offset + size == after->first) {
    size += after->second;
    after = free_.erase(after);
  }
  if (after != free_.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second == offset) {
      before->second += size;
      return;
    }
  }
  free_[offset] = size;
}

}  // namespace lockstep::shm
