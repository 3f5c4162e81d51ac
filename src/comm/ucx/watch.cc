#include "comm/ucx/watch.h"

#include <algorithm>

#include "base/log.h"
#include "comm/wait_chain.h"

namespace lockstep::ucx {
namespace {

// How long a rank that goes waits for those who compute and do not listen. What it said is on its way by
// then.
constexpr int64_t kLingerNs = 500'000'000;

}  // namespace

Watch::Watch(Worker& worker, Peers& peers, WaitLimits limits)
    : worker_(worker), peers_(peers), limits_(limits) {}

std::chrono::milliseconds Watch::first_notice() const {
  return std::min(limits_.stall, limits_.deadline) / 2;
}

// ---- what everybody does ----

LedgerEntry Watch::entry_of(int rank) const {
  if (rank != peers_.rank()) return peers_.of(rank).last;
  const LedgerEntry message = messages_.last();
  return message.state == LedgerState::kWaiting ? message : collectives_.last();
}

std::string Watch::last_did(int rank) const {
  return fmt::format("rank {} {}", peers_.number(rank), text_of(entry_of(rank), steady_now_ns()));
}

std::vector<int> Watch::chain_from(int rank) const {
  return wait_chain(rank, peers_.rank(), peers_.size(), [&](int other) {
    LedgerEntry entry = entry_of(other);
    entry.waiting_for = peers_.line().index(entry.waiting_for);
    return entry;
  });
}

std::string Watch::chain_text(int rank) const {
  std::string text;
  for (const int other : chain_from(rank)) text += (text.empty() ? "" : "; ") + last_did(other);
  return text;
}

// ---- collectives ----

void Watch::enter(const Collective& collective) {
  current_ = &collective;
  call_ = call_of(collective, false);
  Notice notice = notice_of(entry_of_current(LedgerState::kWaiting));
  notice.kind = NoticeKind::kCall;
  notice.call = call_;
  peers_.tell_all(notice);
  const auto stray = find_stray();
  if (!stray) return;
  current_ = nullptr;
  fail_with(*stray);
}

void Watch::leave(bool finished) {
  // One that has not will say why.
  if (finished && !verdict_) peers_.tell_all(notice_of(entry_of_current(LedgerState::kDone)));
  current_ = nullptr;
}

LedgerEntry Watch::entry_of_current(LedgerState state) const {
  return {current_->number, current_->kind, state, current_->bytes(), steady_now_ns(), -1, current_->label};
}

bool Watch::agrees(int rank) {
  Peer& peer = peers_.of(rank);
  if (current_ == nullptr || peer.agreed == call_.number) return true;
  // The one who comes later compares: a peer that is still in an earlier collective finds ours there.
  while (!peer.calls.empty() && peer.calls.front().number < call_.number) peer.calls.pop_front();
  if (peer.calls.empty() || peer.calls.front() != call_) return false;
  peer.agreed = call_.number;
  peer.calls.pop_front();
  return true;
}

std::optional<PeerError> Watch::find_stray() {
  for (int rank = 0; rank < peers_.size(); ++rank) {
    const Peer& peer = peers_.of(rank);
    if (!agrees(rank) && !peer.calls.empty() && peer.calls.front().number == call_.number)
      return different_calls(*current_, peers_.own_number(), call_, peers_.number(rank), peer.calls.front());
  }
  return {};
}

// ---- trouble ----

std::optional<PeerError> Watch::broken_group(const Operation& operation) const {
  if (verdict_) return PeerError(operation(), verdict_->culprit, verdict_->text);
  for (int rank = 0; rank < peers_.size(); ++rank)
    if (const Peer& peer = peers_.of(rank); peer.failed)
      return PeerError(operation(), peer.culprit, peer.verdict);
  for (int rank = 0; rank < peers_.size(); ++rank)
    if (const Peer& peer = peers_.of(rank); peer.gone && !peer.left)
      return PeerError(operation(), peers_.number(rank),
                       fmt::format("{} has died or lost its connection ({})", peers_.name(rank), *peer.gone),
                       "before that, " + last_did(rank));
  return {};
}

std::optional<PeerError> Watch::look_around(Waiting& waiting, const Operation& operation) {
  peers_.answer();
  if (auto stray = find_stray()) return stray;
  if (auto broken = broken_group(operation)) return broken;
  const int peer = waiting.peer;
  const int number = peers_.number(peer);
  if (peers_.of(peer).left)
    return PeerError(operation(), number, fmt::format("rank {} has left the group", number),
                     "before that, " + last_did(peer));
  const auto waited = std::chrono::milliseconds((steady_now_ns() - waiting.start_ns) / 1'000'000);
  const auto seconds = static_cast<double>(waited.count()) / 1000;
  if (waited >= limits_.deadline)
    return PeerError(operation(), peers_.number(chain_from(peer).back()),
                     fmt::format("rank {} waited {:.1f} s for rank {}", peers_.own_number(), seconds, number),
                     chain_text(peer));
  if (waited >= waiting.next_notice) {
    peers_.tell_all(notice_of(entry_of(peers_.rank())));
    waiting.next_notice *= 2;
  }
  if (waited >= waiting.next_report) {
    log_warn("rank {} has waited {:.1f} s in {} for rank {}: {}; giving up after {:.1f} s",
             peers_.own_number(), seconds, operation(), number, chain_text(peer),
             static_cast<double>(limits_.deadline.count()) / 1000);
    waiting.next_report *= 2;
  }
  return {};
}

void Watch::glance() {
  worker_.move();
  peers_.answer();
  const LedgerEntry own = entry_of(peers_.rank());
  const bool waits = own.state == LedgerState::kWaiting && own.waiting_for >= 0;
  const auto waited = std::chrono::milliseconds((steady_now_ns() - own.since_ns) / 1'000'000);
  if (waits && waited >= first_notice() && (own.number != told_number_ || own.waiting_for != told_rank_)) {
    told_number_ = own.number;
    told_rank_ = own.waiting_for;
    peers_.tell_all(notice_of(own));
  }
  if (const auto stray = find_stray()) fail_with(*stray);
  const auto operation = [&] { return current_ == nullptr ? "waiting" : text_of(*current_); };
  if (const auto broken = broken_group(operation)) fail_with(*broken);
}

void Watch::give_up(int culprit, std::string_view verdict) {
  if (verdict_) return;
  verdict_ = {culprit, std::string(verdict)};
  peers_.tell_all(verdict_notice(culprit, verdict));
  worker_.tell_news();
  worker_.wake();
}

void Watch::fail_with(const PeerError& error) {
  give_up(error.peer(), error.what());
  throw PeerError(error);
}

void Watch::lost(int peer, ucs_status_t status, const Operation& operation) {
  if (!peers_.of(peer).gone) peers_.of(peer).gone = library().status_string(status);
  if (const auto broken = broken_group(operation)) fail_with(*broken);
  const int number = peers_.number(peer);
  fail_with(PeerError(operation(), number, fmt::format("rank {} has left the group", number),
                      "before that, " + last_did(peer)));
}

void Watch::say_goodbye() {
  if (verdict_) return;
  Notice notice = notice_of(entry_of(peers_.rank()));
  notice.kind = NoticeKind::kLeft;
  peers_.tell_all(notice);
}

void Watch::linger(Worker::Lock& lock) {
  if (linger_end_ns_ == 0) linger_end_ns_ = steady_now_ns() + kLingerNs;
  worker_.drive(
      lock,
      [&] {
        peers_.answer();
        return peers_.all_have_heard() || steady_now_ns() >= linger_end_ns_;
      },
      [] {});
}

}  // namespace lockstep::ucx
