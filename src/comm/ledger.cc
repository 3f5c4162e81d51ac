#include "comm/ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>

namespace lockstep {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;

}  // namespace

int64_t steady_now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

std::string text_of(const LedgerEntry& entry, int64_t now_ns) {
  const double seconds = static_cast<double>(now_ns - entry.since_ns) / 1e9;
  const std::string what = text_of(entry.kind, entry.number, entry.label, entry.bytes);
  switch (entry.state) {
    case LedgerState::kEmpty: return "has started nothing yet";
    case LedgerState::kQueued: return fmt::format("has {} queued since {:.1f} s", what, seconds);
    case LedgerState::kMoving: return fmt::format("moves data in {} since {:.1f} s", what, seconds);
    case LedgerState::kDone: return fmt::format("finished {} {:.1f} s ago", what, seconds);
    case LedgerState::kFailed: return fmt::format("failed in {} {:.1f} s ago", what, seconds);
    case LedgerState::kWaiting: break;
  }
  if (entry.waiting_for < 0) return fmt::format("is in {} since {:.1f} s", what, seconds);
  return fmt::format("waits in {} for rank {} since {:.1f} s", what, entry.waiting_for, seconds);
}

void Ledger::begin(const Collective& collective, LedgerState state) {
  Cell& one = cell(collective.number);
  one.state.store(static_cast<uint32_t>(LedgerState::kEmpty), kRelaxed);
  one.number.store(collective.number, kRelaxed);
  one.kind.store(static_cast<uint32_t>(collective.kind), kRelaxed);
  one.bytes.store(collective.bytes(), kRelaxed);
  one.waiting_for.store(-1, kRelaxed);
  std::array<uint64_t, 4> words{};
  std::memcpy(words.data(), collective.label.data(), std::min(collective.label.size(), sizeof words));
  for (size_t i = 0; i < words.size(); ++i) one.label[i].store(words[i], kRelaxed);
  one.since_ns.store(steady_now_ns(), kRelaxed);
  one.state.store(static_cast<uint32_t>(state), kRelaxed);
  last_.store(collective.number, std::memory_order_release);
}

void Ledger::set_state(uint64_t number, LedgerState state) {
  Cell& one = cell(number);
  if (one.number.load(kRelaxed) != number) return;
  one.since_ns.store(steady_now_ns(), kRelaxed);
  one.state.store(static_cast<uint32_t>(state), kRelaxed);
}

void Ledger::waits_for(uint64_t number, int rank) {
  Cell& one = cell(number);
  if (one.number.load(kRelaxed) == number) one.waiting_for.store(rank, kRelaxed);
}

LedgerEntry Ledger::read(const Cell& cell) {
  LedgerEntry entry;
  entry.number = cell.number.load(kRelaxed);
  entry.kind = static_cast<CollectiveKind>(cell.kind.load(kRelaxed));
  entry.state = static_cast<LedgerState>(cell.state.load(kRelaxed));
  entry.bytes = cell.bytes.load(kRelaxed);
  entry.since_ns = cell.since_ns.load(kRelaxed);
  entry.waiting_for = cell.waiting_for.load(kRelaxed);
  std::array<uint64_t, 4> words{};
  for (size_t i = 0; i < words.size(); ++i) words[i] = cell.label[i].load(kRelaxed);
  const auto* text = reinterpret_cast<const char*>(words.data());
  entry.label.assign(text, strnlen(text, sizeof words));
  return entry;
}

LedgerEntry Ledger::last() const {
  // Of those that are queued, the oldest is the one that the rank is in.
  LedgerEntry latest = read(cells_[last_.load(std::memory_order_acquire) % kEntries]);
  for (const LedgerEntry& entry : recent())
    if (entry.state == LedgerState::kWaiting || entry.state == LedgerState::kMoving ||
        entry.state == LedgerState::kFailed)
      return entry;
  return latest;
}

std::vector<LedgerEntry> Ledger::recent() const {
  std::vector<LedgerEntry> entries;
  for (const Cell& one : cells_) {
    LedgerEntry entry = read(one);
    if (entry.state != LedgerState::kEmpty) entries.push_back(std::move(entry));
  }
  std::sort(entries.begin(), entries.end(),
            [](const LedgerEntry& a, const LedgerEntry& b) { return a.number < b.number; });
  return entries;
}

}  // namespace lockstep
