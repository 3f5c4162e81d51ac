#include "comm/shm/watch.h"

#include <linux/futex.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>

#include "base/cores.h"
#include "base/log.h"
#include "base/process_state.h"

namespace lockstep::shm {
namespace {

// Spinning covers the usual gap between two ranks that run side by side; waking a sleeper costs some tens of
// microseconds. With more ranks than processors the one that is waited for needs the processor, and gets it
// sooner from one that makes way than from one that falls asleep and has to be woken.
constexpr int kSpins = 4000;
constexpr int kCrowdedSpins = 20;
constexpr int kCrowdedYields = 50;

bool is_crowded(const Members& members) { return members.size() > available_cores().machine; }
constexpr std::chrono::milliseconds kVerdictTime{2000};

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
      spins_(is_crowded(members) ? kCrowdedSpins : kSpins),
      yields_(is_crowded(members) ? kCrowdedYields : 0) {}

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

void Watch::sleep_on(std::atomic<uint32_t>& word, uint32_t seen, int64_t at_most_ns) {
  const timespec limit{0, at_most_ns};
  futex(word, FUTEX_WAIT, seen, &limit);
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

bool Watch::is_stopped(int rank) const {
  const Member& member = members_.all[static_cast<size_t>(rank)];
  if (member.process.get() < 0 || is_dead(rank)) return false;
  return process_is_stopped(member.pid);
}

Watch::Link Watch::link_of(int rank) const { return {rank, current(members_.of(rank)), is_stopped(rank)}; }

std::string Watch::text_of_link(const Link& link) const {
  return fmt::format("rank {} {}{}", members_.number(link.rank),
                     link.stopped ? "is stopped (SIGSTOP); it " : "", text_of(link.entry, steady_now_ns()));
}

std::string Watch::last_did(int rank) const { return text_of_link(link_of(rank)); }

std::optional<int> Watch::next_of(const Link& link) const {
  const int next = link.entry.waiting_for;
  if (link.entry.state != LedgerState::kWaiting || next < 0 || next == members_.number(members_.rank))
    return {};
  // What one that stands still wrote last may long have come true.
  if (link.stopped) return {};
  return next;
}

// Read once: its ranks may give up at this very moment.
std::vector<Watch::Link> Watch::chain_from(int rank) const {
  std::vector<Link> chain = {link_of(rank)};
  while (static_cast<int>(chain.size()) < members_.size()) {
    const std::optional<int> next = next_of(chain.back());
    if (!next || !is_here(*next)) break;
    chain.push_back(link_of(members_.line.index(*next)));
  }
  return chain;
}

int Watch::end_of(const std::vector<Link>& chain) const {
  const std::optional<int> next = next_of(chain.back());
  // A rank on another host: what that one does is not known here.
  return next && !is_here(*next) ? *next : members_.number(chain.back().rank);
}

std::string Watch::text_of_chain(const std::vector<Link>& chain) const {
  std::string text;
  for (const Link& link : chain) text += (text.empty() ? "" : "; ") + text_of_link(link);
  return text;
}

std::optional<PeerError> Watch::broken_group(const std::function<std::string()>& operation) const {
  for (int rank = 0; rank < members_.size(); ++rank) {
    const SegmentHeader& header = members_.of(rank).header();
    if (condition(rank) == Condition::kFailed) return PeerError(operation(), header.culprit, header.verdict);
    if (rank != members_.rank && is_dead(rank))
      return PeerError(operation(), members_.number(rank),
                       fmt::format("rank {} (pid {}) has died", members_.number(rank),
                                   members_.all[static_cast<size_t>(rank)].pid),
                       "before that, " + last_did(rank));
  }
  return {};
}

std::optional<PeerError> Watch::look_around(Waiting& waiting,
                                            const std::function<std::string()>& operation) const {
  if (auto broken = broken_group(operation)) return broken;
  const int peer = waiting.peer;
  const int number = members_.number(peer);
  if (condition(peer) == Condition::kLeft)
    return PeerError(operation(), number, fmt::format("rank {} has left the group", number),
                     "before that, " + last_did(peer));
  const auto waited = std::chrono::milliseconds((steady_now_ns() - waiting.start_ns) / 1'000'000);
  const auto seconds = static_cast<double>(waited.count()) / 1000;
  const int own = members_.number(members_.rank);
  const std::vector<Link> chain = chain_from(peer);
  // One that waits for another host sees further than this one, and passes its verdict on; so does one that
  // has just failed.
  const std::optional<int> next = next_of(chain.front());
  const bool will_tell = (next && !is_here(*next)) || chain.front().entry.state == LedgerState::kFailed ||
                         chain.back().entry.state == LedgerState::kFailed;
  const auto patience = will_tell ? kVerdictTime : std::chrono::milliseconds(0);
  if (waited >= limits_.deadline + patience)
    return PeerError(operation(), end_of(chain),
                     fmt::format("rank {} waited {:.1f} s for rank {}", own, seconds, number),
                     text_of_chain(chain));
  if (waited >= waiting.next_report) {
    log_warn("rank {} has waited {:.1f} s in {} for rank {}: {}; giving up after {:.1f} s", own, seconds,
             operation(), number, text_of_chain(chain), static_cast<double>(limits_.deadline.count()) / 1000);
    waiting.next_report *= 2;
  }
  return {};
}

}  // namespace lockstep::shm
