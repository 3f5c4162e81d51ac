#include "cli/movement_floor.h"

#include <immintrin.h>
#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "base/error.h"
#include "cli/simd/movement_loops.h"
#include "comm/shm/segment.h"

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kMostRanks = 128;
constexpr int64_t kLineBytes = 64;
constexpr int64_t kLineFloats = 16;
constexpr int64_t kPageBytes = 4096;
using shm::kHashedSpan;
constexpr int64_t kBatches = 11;
constexpr int64_t kMostCalls = 5000;
// With more ranks than processors the one that is waited for needs the processor.
constexpr int kSpins = 10000;
constexpr std::chrono::seconds kPatience{60};

const movement::MovementLoops& loops() {
  static const bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return wide ? movement::avx512::movement_loops : movement::avx2::movement_loops;
}

}  // namespace

enum class MovementFloor::Way : int {
  kLines,
  kLinesAhead,
  kLinesPast,
  kPages,
  kPagesAhead,
  kPagesPast,
  kPagesPastAhead,
  kOwnThenCopy,
  kEnd
};

struct MovementFloor::Header {
  struct alignas(kLineBytes) Slot {
    std::atomic<uint32_t> meetings{0};
  };
  Slot slots[kMostRanks];
  alignas(kLineBytes) int64_t calls = 0;  // what rank 0 has decided, and the others read after a meeting
  int way = 0;
};

MovementFloor::MovementFloor(int ranks, int64_t most_bytes)
    : ranks_(ranks),
      spins_(ranks <= static_cast<int>(std::thread::hardware_concurrency()) ? kSpins : 0),
      stride_((most_bytes + kHashedSpan - 1) / kHashedSpan * kHashedSpan + kPageBytes) {
  LOCKSTEP_CHECK(ranks >= 1 && ranks <= kMostRanks, "{} ranks", ranks);
  const int64_t before = (static_cast<int64_t>(sizeof(Header)) + kPageBytes - 1) / kPageBytes * kPageBytes;
  mapped_ = static_cast<size_t>(before + stride_ * ranks);
  void* memory =
      mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    throw UserError("no room for the buffers of --floor: {}; leave out the largest sizes",
                    std::strerror(errno));
  header_ = std::construct_at(static_cast<Header*>(memory));
}

MovementFloor::~MovementFloor() { munmap(header_, mapped_); }

float* MovementFloor::buffer(int rank) const {
  auto* end = reinterpret_cast<std::byte*>(header_) + mapped_;
  return reinterpret_cast<float*>(end - stride_ * (ranks_ - rank));
}

void MovementFloor::meet(int rank) {
  std::atomic<uint32_t>& own = header_->slots[rank].meetings;
  const uint32_t meeting = own.load(std::memory_order_relaxed) + 1;
  own.store(meeting, std::memory_order_release);
  for (int hop = 1; hop < ranks_; ++hop) {
    const std::atomic<uint32_t>& theirs = header_->slots[(rank + hop) % ranks_].meetings;
    const auto here = [&] {
      return static_cast<int32_t>(theirs.load(std::memory_order_acquire) - meeting) >= 0;
    };
    for (int spin = 0; spin < spins_ && !here(); ++spin) _mm_pause();
    for (const auto start = Clock::now(); !here(); sched_yield())
      if (Clock::now() - start > kPatience)
        throw CommError("rank {} waited {} s for rank {} to measure the floor", rank, kPatience.count(),
                        (rank + hop) % ranks_);
  }
}

void MovementFloor::move(Way way, int rank, int64_t lines) {
  const auto share = [&](int of) {
    return std::pair{lines * of / ranks_ * kLineFloats, lines * (of + 1) / ranks_ * kLineFloats};
  };
  const auto [begin, end] = share(rank);
  std::vector<float*> buffers;  // the rank's own first
  for (int hop = 0; hop < ranks_; ++hop) buffers.push_back(buffer((rank + hop) % ranks_) + begin);
  const int64_t n = end - begin;
  switch (way) {
    case Way::kLines: return loops().sum_lines(buffers.data(), ranks_, n, false, false);
    case Way::kLinesAhead: return loops().sum_lines(buffers.data(), ranks_, n, false, true);
    case Way::kLinesPast: return loops().sum_lines(buffers.data(), ranks_, n, true, false);
    case Way::kPages: return loops().sum_pages(buffers.data(), ranks_, n, false, false);
    case Way::kPagesAhead: return loops().sum_pages(buffers.data(), ranks_, n, false, true);
    case Way::kPagesPast: return loops().sum_pages(buffers.data(), ranks_, n, true, false);
    case Way::kPagesPastAhead: return loops().sum_pages(buffers.data(), ranks_, n, true, true);
    case Way::kOwnThenCopy: break;
    case Way::kEnd: throw InternalError("no such way to move");
  }
  // The sums of the others may be those of the last call: the least to move, not a result.
  loops().sum_to_first(buffers.data(), ranks_, n);
  for (int hop = 1; hop < ranks_; ++hop) {
    const int peer = (rank + hop) % ranks_;
    const auto [from, to] = share(peer);
    loops().copy(buffer(rank) + from, buffer(peer) + from, to - from);
  }
}

double MovementFloor::batch(Way way, int rank, int64_t lines, int64_t calls) {
  meet(rank);
  const auto start = Clock::now();
  for (int64_t i = 0; i < calls; ++i) {
    meet(rank);
    move(way, rank, lines);
    meet(rank);
  }
  return std::chrono::duration<double>(Clock::now() - start).count() / static_cast<double>(calls);
}

double MovementFloor::microseconds(int rank, int64_t bytes, double seconds) {
  const int64_t lines = bytes / kLineBytes;
  std::memset(buffer(rank), 0, static_cast<size_t>(bytes));
  double least = batch(Way::kLines, rank, lines, 3);
  const auto agree = [&] {
    if (rank == 0)
      header_->calls = std::clamp<int64_t>(static_cast<int64_t>(seconds / kBatches / least), 1, kMostCalls);
    meet(rank);
    return header_->calls;
  };
  // First a short try of each way, then the batches that count.
  const int64_t tried = std::max<int64_t>(2, agree() / 8);
  double best = 0;
  for (int way = 0; way < static_cast<int>(Way::kEnd); ++way) {
    batch(static_cast<Way>(way), rank, lines, 1);
    const double taken = batch(static_cast<Way>(way), rank, lines, tried);
    if (rank == 0 && (best == 0 || taken < best)) {
      best = taken;
      header_->way = way;
    }
  }
  if (rank == 0) least = best;
  const int64_t calls = agree();
  const auto way = static_cast<Way>(header_->way);
  for (int64_t i = 0; i < kBatches; ++i) least = std::min(least, batch(way, rank, lines, calls));
  return least * 1e6;
}

}  // namespace lockstep
