#include "comm/ledger.h"

#include <gtest/gtest.h>

#include <memory>

namespace lockstep {
namespace {

Collective collective(uint64_t number, std::string label) {
  Collective one;
  one.kind = CollectiveKind::kAllReduce;
  one.count = 16 << 20;
  one.element = 4;
  one.number = number;
  one.label = std::move(label);
  return one;
}

TEST(Ledger, SaysWhatARankDoes) {
  const auto ledger = std::make_unique<Ledger>();
  EXPECT_EQ(text_of(ledger->last(), 0), "has started nothing yet");
  ledger->begin(collective(17, "bucket 3"), LedgerState::kWaiting);
  ledger->waits_for(17, 2);
  LedgerEntry entry = ledger->last();
  EXPECT_EQ(text_of(entry, entry.since_ns + 5'200'000'000),
            "waits in all_reduce #17 (bucket 3, 64 MiB) for rank 2 since 5.2 s");
  ledger->set_state(17, LedgerState::kDone);
  entry = ledger->last();
  EXPECT_EQ(text_of(entry, entry.since_ns), "finished all_reduce #17 (bucket 3, 64 MiB) 0.0 s ago");
}

TEST(Ledger, TheOneUnderWayComesBeforeThoseThatAreQueued) {
  const auto ledger = std::make_unique<Ledger>();
  for (uint64_t number = 1; number <= 40; ++number)
    ledger->begin(collective(number, ""), LedgerState::kQueued);
  ledger->set_state(30, LedgerState::kWaiting);
  EXPECT_EQ(ledger->last().number, 30U);
  EXPECT_EQ(ledger->recent().size(), Ledger::kEntries);
  EXPECT_EQ(ledger->recent().front().number, 9U);
}

TEST(Ledger, LongLabelsAreCut) {
  const auto ledger = std::make_unique<Ledger>();
  ledger->begin(collective(1, std::string(100, 'x')), LedgerState::kQueued);
  EXPECT_EQ(ledger->last().label, std::string(32, 'x'));
}

}  // namespace
}  // namespace lockstep
