#include "comm/shm/watch.h"

#include <linux/futex.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>
#include <thread>

#include "base/log.h"

namespace lockstep::shm {
namespace {

// Spinning covers the usual gap between two ranks that run side by side; waking a sleeper costs some tens of
// microseconds. With more ranks than processors the one that is waited for needs the processor.
constexpr int kSpins = 4000;
constexpr int kCrowdedSpins = 20;
constexpr int64_t kGlanceNs = 100'000'000;

long futex(std::atomic<uint32_t>& word, int operation, uint32_t value, const timespec* timeout) {
  return syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), operation, value, timeout, nullptr, 0);
}

LedgerEntry current(const Segment& segment) {
  const LedgerEntry message = segment.header().messages.last();
  return message.state == LedgerState::kWaiting ? message : segment.header().collectives.last();
}

}  // namespace

Watch::Watch(const Members& members, WaitLimits limits)
    : members_(members),
      limits_(limits),
      spins_(members.size() <= static_cast<int>(std::thread::hardware_concurrency()) ? kSpins
                                                                                     : kCrowdedSpins) {}

void Watch::ring(int peer) const {
  SegmentHeader& header = members_.of(peer).header();
  if (header.sleepers.load() == 0) return;
  header.bell.fetch_add(1);
  futex(header.bell, FUTEX_WAKE, INT_MAX, nullptr);
}

void Watch::ring_all() const {
  for (int peer = 0; peer < members_.size(); ++peer)
    if (peer != members_.rank) ring(peer);
}

void Watch::sleep_on(std::atomic<uint32_t>& word, uint32_t seen) {
  const timespec glance{0, kGlanceNs};
  futex(word, FUTEX_WAIT, seen, &glance);
}

Condition Watch::condition(int rank) const {
  return static_cast<Condition>(members_.of(rank).header().condition.load());
}

bool Watch::is_dead(int rank) const {
  const Member& member = members_.all[static_cast<size_t>(rank)];
  if (member.process.get() < 0 || condition(rank) == Condition::kLeft) return false;
  pollfd process{member.process.get(), POLLIN, 0};
  return poll(&process, 1, 0) > 0;
}

std::string Watch::last_did(int rank) const {
  return fmt::format("rank {} {}", rank, text_of(current(members_.of(rank)), steady_now_ns()));
}

int Watch::end_of_chain(int rank) const {
  for (int hops = 0; hops < members_.size(); ++hops) {
    const LedgerEntry entry = current(members_.of(rank));
    const int next = entry.waiting_for;
    if (entry.state != LedgerState::kWaiting || next < 0 || next >= members_.size() || next == members_.rank)
      return rank;
    rank = next;
  }
  return rank;
}

std::string Watch::chain_text(int rank) const {
  std::string text = last_did(rank);
  const int last = end_of_chain(rank);
  for (int hops = 0; rank != last && hops < members_.size(); ++hops) {
    rank = current(members_.of(rank)).waiting_for;
    if (rank < 0 || rank >= members_.size()) break;
    text += "; " + last_did(rank);
  }
  return text;
}

std::optional<PeerError> Watch::broken_group(const std::function<std::string()>& operation) const {
  for (int rank = 0; rank < members_.size(); ++rank) {
    const SegmentHeader& header = members_.of(rank).header();
    if (condition(rank) == Condition::kFailed) return PeerError(operation(), header.culprit, header.verdict);
    if (rank != members_.rank && is_dead(rank))
      return PeerError(
          operation(), rank,
          fmt::format("rank {} (pid {}) has died", rank, members_.all[static_cast<size_t>(rank)].pid),
          "before that, " + last_did(rank));
  }
  return {};
}

std::optional<PeerError> Watch::look_around(Waiting& waiting,
                                            const std::function<std::string()>& operation) const {
  if (auto broken = broken_group(operation)) return broken;
  const int peer = waiting.peer;
  if (condition(peer) == Condition::kLeft)
    return PeerError(operation(), peer, fmt::format("rank {} has left the group", peer),
                     "before that, " + last_did(peer));
  const auto waited = std::chrono::milliseconds((steady_now_ns() - waiting.start_ns) / 1'000'000);
  const auto seconds = static_cast<double>(waited.count()) / 1000;
  if (waited >= limits_.deadline)
    return PeerError(operation(), end_of_chain(peer),
                     fmt::format("rank {} waited {:.1f} s for rank {}", members_.rank, seconds, peer),
                     chain_text(peer));
  if (waited >= waiting.next_report) {
    log_warn("rank {} has waited {:.1f} s in {} for rank {}: {}; giving up after {:.1f} s", members_.rank,
             seconds, operation(), peer, chain_text(peer),
             static_cast<double>(limits_.deadline.count()) / 1000);
    waiting.next_report *= 2;
  }
  return {};
}

}  // namespace lockstep::shm
