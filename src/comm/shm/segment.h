// The shared memory of one rank: what it says about itself, its mailboxes, and the arena of its buffers.
//
// A segment is an anonymous file (memfd), so nothing of it stays when its ranks are gone, however they end,
// and the size of /dev/shm is no limit. It is as large as the machine's memory, but only what is used takes
// any. Every rank maps the segments of all its peers.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/error.h"
#include "comm/call.h"
#include "comm/ledger.h"

namespace lockstep::shm {

inline constexpr int kMaxRanks = 128;
inline constexpr int64_t kMaxPartials = 32;
inline constexpr int64_t kMailboxBytes = 256 << 10;
inline constexpr int64_t kMessageBytes = 64 << 10;
inline constexpr int64_t kPage = 4096;
inline constexpr int64_t kLine = 64;
// Zen finds a line in its nearest cache by a hash of bits 12 to 27 of the address. A sum walks through the
// same place of everybody's segment, and segments with equal hashes would push each other's lines out (1 MiB
// took 118 us instead of 12): rank k's lies k pages past a multiple of this.
inline constexpr int64_t kHashedSpan = int64_t{1} << 28;

// A file descriptor that is closed with its owner.
class Fd {
 public:
  explicit Fd(int fd = -1) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  Fd& operator=(Fd&& other) noexcept;
  ~Fd();
  int get() const { return fd_; }

 private:
  int fd_;
};

struct StageRecord {
  Call call;
  // Rank 0's choice holds for all.
  bool through_caches = false;
  int64_t buffers = 0;
  int64_t offsets[kMaxPartials] = {};  // in the segment
};

enum class Condition : uint32_t { kJoined, kFailed, kLeft };

// From one rank to another. The sender writes all but `taken`.
struct alignas(kLine) Channel {
  std::atomic<uint32_t> posted;
  int64_t offset;  // in the sender's segment
  int64_t bytes;
  int64_t total;  // of the message that this is a part of
  alignas(kLine) std::atomic<uint32_t> taken;
};

struct SegmentHeader {
  // Stages passed by this rank; record i % 2 belongs to stage i. A rank is never more than one stage ahead of
  // a peer that still reads.
  alignas(kLine) std::atomic<uint32_t> stage;
  alignas(kLine) StageRecord records[2];
  // Whoever changes something that this rank may wait for rings, if it sleeps.
  alignas(kLine) std::atomic<uint32_t> sleepers;
  std::atomic<uint32_t> bell;
  alignas(kLine) std::atomic<uint32_t> condition;
  int32_t culprit;
  char verdict[512];
  alignas(kLine) Ledger collectives;
  alignas(kLine) Ledger messages;
  Channel channels[kMaxRanks];  // to each peer
};

class Segment {
 public:
  // A new one, for the calling process's rank, in a group of `ranks`. arena_bytes 0: as much as the machine
  // has.
  static std::shared_ptr<Segment> create(int rank, int ranks, int64_t arena_bytes = 0);
  // A peer's.
  static std::shared_ptr<Segment> map(Fd fd, int rank);
  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  int fd() const { return fd_.get(); }
  SegmentHeader& header() const { return *reinterpret_cast<SegmentHeader*>(base_); }
  std::byte* at(int64_t offset) const { return base_ + offset; }
  int64_t bytes() const { return bytes_; }
  std::byte* mailbox(uint32_t stage) const;
  int64_t message_offset(int peer) const;
  int64_t arena_offset() const;
  // Whether [memory, memory + bytes) lies in the arena, and where in the segment.
  bool holds(const std::byte* memory, int64_t bytes) const;
  int64_t offset_of(const std::byte* memory) const {
    return reinterpret_cast<intptr_t>(memory) - reinterpret_cast<intptr_t>(base_);
  }

 private:
  Segment(Fd fd, int64_t bytes, int rank);
  Fd fd_;
  std::byte* base_;
  int64_t bytes_;
};

}  // namespace lockstep::shm
