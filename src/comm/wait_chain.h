// Who waits for whom: from a rank along "waits for" to one that waits for nobody, whom everybody waits for.
#pragma once
#include <vector>

#include "comm/ledger.h"

namespace lockstep {

// The ranks of the chain from `rank` on, as `self` sees it; never back to `self`. entry_of(rank) is what a
// rank does.
template <typename EntryOf>
std::vector<int> wait_chain(int rank, int self, int size, const EntryOf& entry_of) {
  std::vector<int> chain = {rank};
  while (static_cast<int>(chain.size()) < size) {
    const LedgerEntry entry = entry_of(chain.back());
    const int next = entry.waiting_for;
    if (entry.state != LedgerState::kWaiting || next < 0 || next >= size || next == self) break;
    chain.push_back(next);
  }
  return chain;
}

}  // namespace lockstep
