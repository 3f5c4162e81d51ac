// Decimals are read to the last bit as the standard library reads them.
#include "data/format/decimal.h"

#include <gtest/gtest.h>

#include <charconv>
#include <cstring>
#include <random>
#include <string>

namespace lockstep {
namespace {

void expect_exact(const std::string& text) {
  const auto found = decimal_of(text);
  if (!found) return;
  double expected = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), expected);
  ASSERT_TRUE(failure == std::errc() && end == text.data() + text.size()) << text;
  ASSERT_EQ(std::memcmp(&*found, &expected, sizeof expected), 0) << text;
}

TEST(Decimal, RandomDigitsAreExact) {
  std::mt19937_64 random(11);
  for (int i = 0; i < 100000; ++i) {
    std::string text = std::to_string(random() >> random() % 64);
    if (random() % 4 != 0) text.insert(random() % (text.size() + 1), ".");
    if (random() % 3 == 0) text.insert(0, std::string(random() % 4, '0'));
    if (random() % 3 == 0) text.insert(0, "-");
    if (random() % 5 == 0) text += "e-" + std::to_string(random() % 12);
    expect_exact(text);
  }
}

// The shortest text of a double has up to 17 digits; a half between two doubles has more.
TEST(Decimal, ShortestTextsOfDoublesAreExact) {
  std::mt19937_64 random(12);
  std::uniform_real_distribution<double> uniform(0, 100);
  for (int i = 0; i < 100000; ++i) {
    char text[64];
    const double value = uniform(random);
    const auto end = std::to_chars(text, text + sizeof text, value).ptr;
    const auto found = decimal_of({text, end});
    if (!found) continue;
    ASSERT_EQ(*found, value);
  }
}

TEST(Decimal, TiesGoToTheEvenNumber) {
  EXPECT_EQ(decimal_of("9007199254740993"), 9007199254740992.0);
  EXPECT_EQ(decimal_of("9007199254740995"), 9007199254740996.0);
  EXPECT_EQ(decimal_of("900719925474099.35"), 900719925474099.375);
  EXPECT_EQ(decimal_of("9007199254740993.0"), 9007199254740992.0);
  EXPECT_EQ(decimal_of("9007199254740993.001"), 9007199254740994.0);
}

TEST(Decimal, WhatItCannotReadIsLeftToOthers) {
  for (const char* text : {"", "-", ".", "-.", "+1", "1e", "1e+", "1.2.3", "abc", "1x", " 1", "1e5000",
                           "12345678901234567890", "1e30", "0x10", "inf", "nan", "1e-1-"})
    EXPECT_FALSE(decimal_of(text)) << text;
  EXPECT_EQ(decimal_of("-.5"), -0.5);
  EXPECT_EQ(decimal_of("5."), 5.0);
  EXPECT_EQ(decimal_of("1.5e-3"), 0.0015);
  EXPECT_EQ(decimal_of("00000000000000000000000001.5"), 1.5);
}

}  // namespace
}  // namespace lockstep
