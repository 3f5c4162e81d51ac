// Masking is a pure function of seed, epoch, record and position, in the shares that it says.
#include "data/tokens/masked_tokens.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "data/synthetic/patterns.h"

namespace lockstep {
namespace {

using Epochs = MaskedTokens::Epochs;

constexpr int32_t kMask = 7;

TokenMasking some_masking() { return {.mask_token = kMask, .vocab = 1000, .special = {3, 1}, .seed = 5}; }

std::shared_ptr<const Source> rows(int64_t records, int64_t seq) {
  return std::make_shared<PatternTokens>(PatternTokensOptions{.records = records, .seq = seq, .vocab = 1000});
}

std::vector<int32_t> all_of(const Batch& batch, const char* column) {
  const auto values = batch.values<int32_t>(batch.index_of(column));
  return {values.begin(), values.end()};
}

Batch filled(const Source& source, const std::vector<int64_t>& records, const std::vector<int64_t>& epochs) {
  Batch batch(source.columns(), static_cast<int64_t>(records.size()));
  source.fill_in_epochs(records, epochs, batch);
  return batch;
}

TEST(MaskedTokens, SharesAreThoseAskedFor) {
  const auto plain = rows(200, 512);
  const MaskedTokens masked(plain, some_masking(), Epochs::kEachItsOwn);
  std::vector<int64_t> records(200);
  std::iota(records.begin(), records.end(), 0);
  const Batch batch = filled(masked, records, std::vector<int64_t>(200, 0));
  Batch before(plain->columns(), 200);
  plain->fill(records, before);
  const std::vector<int32_t> tokens = all_of(batch, "tokens"), targets = all_of(batch, "targets"),
                             original = all_of(before, "tokens");
  double open = 0, chosen = 0, became_mask = 0, stayed = 0;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const bool special = original[i] == 1 || original[i] == 3;
    open += special ? 0 : 1;
    if (targets[i] == kIgnoredLabel) {
      EXPECT_EQ(tokens[i], original[i]);
      continue;
    }
    EXPECT_FALSE(special);
    EXPECT_EQ(targets[i], original[i]);
    chosen += 1;
    became_mask += tokens[i] == kMask ? 1 : 0;
    stayed += tokens[i] == original[i] ? 1 : 0;
    EXPECT_GE(tokens[i], 0);
    EXPECT_LT(tokens[i], 1000);
  }
  // Five standard deviations of about 15,000 draws.
  EXPECT_NEAR(chosen / open, 0.15, 0.006);
  EXPECT_NEAR(became_mask / chosen, 0.8, 0.02);
  EXPECT_NEAR(stayed / chosen, 0.1, 0.015);
}

TEST(MaskedTokens, ARecordIsTheSameInEveryBatch) {
  const MaskedTokens masked(rows(20, 64), some_masking(), Epochs::kEachItsOwn);
  const Batch together = filled(masked, {4, 9, 17}, {2, 2, 5});
  const Batch alone = filled(masked, {9}, {2});
  for (const char* column : {"tokens", "targets"}) {
    const std::vector<int32_t> all = all_of(together, column), one = all_of(alone, column);
    EXPECT_TRUE(std::equal(one.begin(), one.end(), all.begin() + 64)) << column;
  }
}

TEST(MaskedTokens, EpochsSeedsAndRecordsDiffer) {
  const auto plain = rows(20, 64);
  const MaskedTokens masked(plain, some_masking(), Epochs::kEachItsOwn);
  EXPECT_TRUE(masked.varies());
  const std::vector<int32_t> first = all_of(filled(masked, {9}, {0}), "targets");
  EXPECT_NE(first, all_of(filled(masked, {9}, {1}), "targets"));
  TokenMasking other = some_masking();
  other.seed = 6;
  const MaskedTokens reseeded(plain, other, Epochs::kEachItsOwn);
  EXPECT_NE(first, all_of(filled(reseeded, {9}, {0}), "targets"));
  EXPECT_NE(masked.fingerprint(), reseeded.fingerprint());
  EXPECT_NE(masked.fingerprint(), plain->fingerprint());
}

TEST(MaskedTokens, WhatEvaluatesIsMaskedAlikeInEveryEpoch) {
  const MaskedTokens masked(rows(20, 64), some_masking(), Epochs::kAllAlike);
  EXPECT_FALSE(masked.varies());
  const Batch first = filled(masked, {9}, {0}), second = filled(masked, {9}, {3});
  EXPECT_EQ(all_of(first, "tokens"), all_of(second, "tokens"));
  EXPECT_EQ(all_of(first, "targets"), all_of(second, "targets"));
  Batch plain(masked.columns(), 1);
  masked.fill(std::vector<int64_t>{9}, plain);
  EXPECT_EQ(all_of(first, "tokens"), all_of(plain, "tokens"));
}

// A position's draw does not depend on the tokens before it, and golden values hold it fixed over versions.
TEST(MaskedTokens, PositionsAreDrawnOnTheirOwn) {
  TokenMasking masking = some_masking();
  std::sort(masking.special.begin(), masking.special.end());
  std::vector<int32_t> tokens(48, 100), targets(48), shortened(20, 100), fewer(20);
  mask_tokens(masking, 3, 11, tokens, targets);
  mask_tokens(masking, 3, 11, shortened, fewer);
  EXPECT_TRUE(std::equal(fewer.begin(), fewer.end(), targets.begin()));
  std::vector<size_t> chosen;
  for (size_t t = 0; t < targets.size(); ++t)
    if (targets[t] != kIgnoredLabel) chosen.push_back(t);
  std::vector<int32_t> again(48, 100), hidden(48);
  std::vector<uint8_t> visible(48, 1);
  visible[chosen.at(0)] = 0;
  mask_tokens(masking, 3, 11, again, hidden, visible);
  EXPECT_EQ(hidden[chosen[0]], kIgnoredLabel);
  EXPECT_EQ(again[chosen[0]], 100);
  EXPECT_EQ(hidden[chosen.at(1)], 100);
}

TEST(MaskedTokens, RecordsThatAreNotThereStayIgnored) {
  const MaskedTokens masked(rows(20, 16), some_masking(), Epochs::kEachItsOwn);
  const Batch batch = filled(masked, {kNoRecord}, {0});
  EXPECT_EQ(all_of(batch, "targets"), std::vector<int32_t>(16, kIgnoredLabel));
}

TEST(MaskedTokens, WhatCannotBeIsRefused) {
  const auto refused = [](TokenMasking masking) {
    EXPECT_THROW(MaskedTokens(rows(2, 4), masking, Epochs::kAllAlike), UserError);
  };
  refused({.share = 0, .mask_token = 1, .vocab = 10});
  refused({.share = 1, .mask_token = 1, .vocab = 10});
  refused({.mask = 0.8, .random = 0.3, .mask_token = 1, .vocab = 10});
  refused({.mask_token = 10, .vocab = 10});
  const auto text = std::make_shared<PatternText>(PatternTextOptions{.records = 2, .seq = 4});
  EXPECT_THROW(MaskedTokens(text, some_masking(), Epochs::kAllAlike), UserError);
}

}  // namespace
}  // namespace lockstep
