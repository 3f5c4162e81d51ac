// What a rank has been doing: its last collectives, in memory that its peers can read.
//
// One rank writes, anybody reads at any time, also while it is stuck or after it was killed; so a stalled
// wait can say who waits for whom and in which operation. Every field is an atomic of its own: a reader in
// the middle of a write sees a mixture, which is good enough for a message and never wrong about a rank that
// no longer moves.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "comm/collective.h"

namespace lockstep {

enum class LedgerState : uint32_t { kEmpty, kQueued, kWaiting, kMoving, kDone, kFailed };

struct LedgerEntry {
  uint64_t number = 0;
  CollectiveKind kind = CollectiveKind::kNone;
  LedgerState state = LedgerState::kEmpty;
  int64_t bytes = 0;
  int64_t since_ns = 0;  // of the steady clock, when the state was entered
  int waiting_for = -1;  // a rank
  std::string label = {};
};

// "waits in all_reduce #17 (bucket 3, 64 MiB) for rank 2 since 5.2 s"
std::string text_of(const LedgerEntry& entry, int64_t now_ns);
int64_t steady_now_ns();

// Lives in memory of any kind that starts as zeros, such as a shared segment; has no pointers.
class Ledger {
 public:
  static constexpr size_t kEntries = 32;

  void begin(const Collective& collective, LedgerState state);
  void set_state(uint64_t number, LedgerState state);
  // Cheap enough for every wait: two stores.
  void waits_for(uint64_t number, int rank);

  // The latest, or one with kEmpty before the first.
  LedgerEntry last() const;
  // What the ledger remembers, oldest first.
  std::vector<LedgerEntry> recent() const;

 private:
  struct Cell {
    std::atomic<uint64_t> number;
    std::atomic<uint32_t> kind;
    std::atomic<uint32_t> state;
    std::atomic<int64_t> bytes;
    std::atomic<int64_t> since_ns;
    std::atomic<int32_t> waiting_for;
    std::array<std::atomic<uint64_t>, 4> label;
  };
  Cell& cell(uint64_t number) { return cells_[number % kEntries]; }
  static LedgerEntry read(const Cell& cell);

  std::atomic<uint64_t> last_;
  std::array<Cell, kEntries> cells_;
};

}  // namespace lockstep
