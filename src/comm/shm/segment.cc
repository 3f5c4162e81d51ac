#include "comm/shm/segment.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/number_text.h"

namespace lockstep::shm {
namespace {

constexpr int64_t up_to(int64_t value, int64_t step) { return (value + step - 1) / step * step; }

constexpr int64_t kMailboxOffset = up_to(sizeof(SegmentHeader), kPage);
constexpr int64_t kMessageOffset = kMailboxOffset + 2 * kMailboxBytes;
constexpr int64_t kArenaOffset = kMessageOffset + kMaxRanks * kMessageBytes;

}  // namespace

Fd& Fd::operator=(Fd&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

Fd::~Fd() {
  if (fd_ >= 0) close(fd_);
}

std::shared_ptr<Segment> Segment::create(int rank, int ranks, int64_t arena_bytes) {
  if (ranks > kMaxRanks)
    throw UserError("{} workers on one host; shared memory joins at most {}", ranks, kMaxRanks);
  if (arena_bytes == 0) arena_bytes = sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
  Fd fd(memfd_create("lockstep", MFD_CLOEXEC));
  if (fd.get() < 0) throw CommError("memfd_create: {}; shared memory needs it", std::strerror(errno));
  const int64_t bytes = kArenaOffset + up_to(arena_bytes, kPage);
  if (ftruncate(fd.get(), bytes) != 0)
    throw CommError("cannot make a shared segment of {}: {}", bytes_text(bytes), std::strerror(errno));
  return std::shared_ptr<Segment>(new Segment(std::move(fd), bytes, rank));
}

std::shared_ptr<Segment> Segment::map(Fd fd, int rank) {
  struct stat status {};
  if (fstat(fd.get(), &status) != 0 || status.st_size < kArenaOffset)
    throw CommError("a peer's shared segment has {} bytes; it must come from another version",
                    status.st_size);
  return std::shared_ptr<Segment>(new Segment(std::move(fd), status.st_size, rank));
}

Segment::Segment(Fd fd, int64_t bytes, int rank) : fd_(std::move(fd)), bytes_(bytes) {
  const auto refused = [&] {
    return CommError("cannot map a shared segment of {}: {}; see ulimit -v", bytes_text(bytes),
                     std::strerror(errno));
  };
  const int64_t room = up_to(bytes, kPage) + 2 * kHashedSpan;
  void* reserved =
      mmap(nullptr, static_cast<size_t>(room), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED) throw refused();
  auto* const first = static_cast<std::byte*>(reserved);
  const auto address = static_cast<int64_t>(reinterpret_cast<uintptr_t>(reserved));
  base_ = first + (up_to(address, kHashedSpan) - address) + rank % kMaxRanks * kPage;
  std::byte* const end = base_ + up_to(bytes, kPage);
  if (mmap(base_, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED,
           fd_.get(), 0) == MAP_FAILED) {
    const CommError error = refused();
    munmap(reserved, static_cast<size_t>(room));
    throw error;
  }
  if (base_ > first) munmap(first, static_cast<size_t>(base_ - first));
  munmap(end, static_cast<size_t>(first + room - end));
}

Segment::~Segment() { munmap(base_, static_cast<size_t>(bytes_)); }

std::byte* Segment::mailbox(uint32_t stage) const { return at(kMailboxOffset + (stage % 2) * kMailboxBytes); }
int64_t Segment::message_offset(int peer) const { return kMessageOffset + peer * kMessageBytes; }
int64_t Segment::arena_offset() const { return kArenaOffset; }

bool Segment::holds(const std::byte* memory, int64_t bytes) const {
  return memory >= base_ + kArenaOffset && memory + bytes <= base_ + bytes_;
}

}  // namespace lockstep::shm
