// The generated sources: records are functions of their index, labels follow the stated rule, and a simple
// rule finds them, so a model can.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "data/synthetic/patterns.h"

namespace lockstep {
namespace {

Batch read(const Source& source, const std::vector<int64_t>& records) {
  Batch batch(source.columns(), static_cast<int64_t>(records.size()));
  source.fill(records, batch);
  return batch;
}

std::vector<int64_t> first_records(int64_t count) {
  std::vector<int64_t> records;
  for (int64_t i = 0; i < count; ++i) records.push_back(i);
  return records;
}

// Record i + offset of one source and record i of another whose range begins there hold the same bytes.
void expect_ranges_agree(const Source& whole, const Source& rest, int64_t offset) {
  const Batch a = read(whole, {offset + 1, offset + 4});
  const Batch b = read(rest, {1, 4});
  for (size_t i = 0; i < a.columns().size(); ++i)
    EXPECT_EQ(std::memcmp(a.data(i), b.data(i), static_cast<size_t>(a.bytes(i))), 0) << a.columns()[i].name;
  EXPECT_NE(whole.fingerprint(), rest.fingerprint());
}

TEST(PatternText, RecordsAreFunctionsOfTheirIndex) {
  PatternTextOptions options;
  options.padded = true;
  const PatternText whole(options);
  options.first = 100;
  expect_ranges_agree(whole, PatternText(options), 100);
}

// Token by token, count how often each label goes with it; a sum of these votes must find the label of other
// records.
TEST(PatternText, TheRuleCanBeLearnt) {
  PatternTextOptions options;
  options.records = 3000;
  options.vocab = 64;
  const PatternText source(options);
  const Batch batch = read(source, first_records(3000));
  const auto tokens = batch.values<int32_t>(0);
  const auto labels = batch.values<int32_t>(2);
  std::vector<double> votes(64);
  for (size_t r = 0; r < 2500; ++r)
    for (size_t t = 1; t < 64; ++t) votes[static_cast<size_t>(tokens[r * 64 + t])] += labels[r] == 1 ? 1 : -1;
  int right = 0;
  int ones = 0;
  for (size_t r = 2500; r < 3000; ++r) {
    double sum = 0;
    for (size_t t = 1; t < 64; ++t) sum += votes[static_cast<size_t>(tokens[r * 64 + t])] > 0 ? 1 : -1;
    right += (sum > 0) == (labels[r] == 1);
    ones += labels[r];
  }
  EXPECT_GT(right, 450);
  EXPECT_GT(ones, 200);
  EXPECT_LT(ones, 300);
}

TEST(PatternText, PaddingIsMarked) {
  PatternTextOptions options;
  options.padded = true;
  const Batch batch = read(PatternText(options), {0, 1, 2, kNoRecord});
  const auto tokens = batch.values<int32_t>(0);
  const auto visible = batch.values<uint8_t>(3);
  for (size_t i = 0; i < tokens.size(); ++i) EXPECT_EQ(visible[i] == 1, tokens[i] != 0 || i % 64 == 0) << i;
  EXPECT_EQ(batch.values<int32_t>(2)[3], kIgnoredLabel);
}

TEST(PatternText, RefusesImpossibleSizes) {
  PatternTextOptions options;
  options.vocab = 2;
  EXPECT_THROW(PatternText{options}, UserError);
}

TEST(PatternTokens, RecordsAreFunctionsOfTheirIndex) {
  PatternTokensOptions options;
  const PatternTokens whole(options);
  options.first = 30;
  expect_ranges_agree(whole, PatternTokens(options), 30);
}

TEST(PatternTokens, OneSuccessorIsTheLikeliest) {
  PatternTokensOptions options;
  options.vocab = 50;
  const Batch batch = read(PatternTokens(options), first_records(500));
  const auto tokens = batch.values<int32_t>(0);
  const auto targets = batch.values<int32_t>(1);
  std::vector<std::vector<int>> counts(50, std::vector<int>(50));
  for (size_t i = 0; i < tokens.size(); ++i) {
    ++counts[static_cast<size_t>(tokens[i])][static_cast<size_t>(targets[i])];
    if (i % 128 != 127) {
      EXPECT_EQ(targets[i], tokens[i + 1]);
    }
  }
  double likeliest = 0;
  for (const auto& row : counts) likeliest += *std::max_element(row.begin(), row.end());
  EXPECT_NEAR(likeliest / static_cast<double>(tokens.size()), 0.66, 0.05);
}

TEST(PatternImages, RecordsAreFunctionsOfTheirIndex) {
  PatternImagesOptions options;
  const PatternImages whole(options);
  options.first = 50;
  expect_ranges_agree(whole, PatternImages(options), 50);
}

TEST(PatternImages, AreNearlyStandardised) {
  const Batch batch = read(PatternImages({}), first_records(200));
  double sum = 0, squares = 0;
  for (const float x : batch.values<float>(0)) {
    sum += x;
    squares += static_cast<double>(x) * x;
  }
  const double count = static_cast<double>(batch.values<float>(0).size());
  EXPECT_NEAR(sum / count, 0.0, 0.1);
  EXPECT_NEAR(std::sqrt(squares / count), 1.0, 0.25);
}

// With two classes the waves run along one axis or the other: neighbours across the wave differ more.
TEST(PatternImages, TheClassIsTheDirection) {
  PatternImagesOptions options;
  options.classes = 2;
  const int64_t count = 200;
  const Batch batch = read(PatternImages(options), first_records(count));
  const auto pixels = batch.values<float>(0);
  int right = 0;
  for (int64_t r = 0; r < count; ++r) {
    std::array<double, 2> change{};
    for (int64_t y = 0; y + 3 < 32; ++y)
      for (int64_t x = 0; x + 3 < 32; ++x) {
        const auto at = [&](int64_t dy, int64_t dx) {
          return pixels[static_cast<size_t>(((r * 32 + y + dy) * 32 + x + dx) * 3)];
        };
        change[0] += std::pow(at(0, 3) - at(0, 0), 2);
        change[1] += std::pow(at(3, 0) - at(0, 0), 2);
      }
    right += (change[1] > change[0]) == (batch.values<int32_t>(1)[static_cast<size_t>(r)] == 1);
  }
  EXPECT_GT(right, 190);
}

}  // namespace
}  // namespace lockstep
