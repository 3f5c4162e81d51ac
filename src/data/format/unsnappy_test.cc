// Snappy's streams unpack to what the library makes of them, damaged ones to nothing where it refuses them;
// and what lies in a stream as it is can be read from it by itself.
#include "data/format/unsnappy.h"

#include <gtest/gtest.h>
#include <snappy.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "data/format/parquet/snappy_extents.h"

namespace lockstep {
namespace {

std::string numbers(size_t count, uint64_t below, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::string bytes;
  for (size_t i = 0; i < count; ++i) {
    const uint64_t number = random() % below;
    bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
  }
  return bytes;
}

// From what hardly repeats to what is nothing but repetition.
std::vector<std::string> texts() {
  std::vector<std::string> all{"", "x", std::string(100'000, 'a'), numbers(20'000, UINT64_MAX, 1)};
  for (const uint64_t below : {2u, 100u, 30'000u, 1'000'000u, 100'000'000u})
    all.push_back(numbers(20'000, below, below));
  std::string some;  // small numbers, in places a byte or more off those of 64 bits
  for (int i = 0; i < 200; ++i) some += numbers(static_cast<size_t>(i), 40'000, 3) + std::string(i % 3, 'c');
  all.push_back(some);
  std::string mixed = numbers(9000, UINT64_MAX, 2);
  mixed.insert(30'000, mixed.substr(10'000, 40));
  mixed.insert(70'000, std::string(90, 'b'));
  all.push_back(mixed);
  std::string words;
  for (int i = 0; i < 4000; ++i) words += "record " + std::to_string(i * i);
  all.push_back(words);
  return all;
}

std::string packed(const std::string& text) {
  std::string stored;
  snappy::Compress(text.data(), text.size(), &stored);
  return stored;
}

TEST(Unsnappy, GivesWhatWasCompressed) {
  for (const std::string& text : texts()) {
    std::string out(text.size(), '?');
    EXPECT_TRUE(unsnappy(packed(text), out));
    EXPECT_EQ(out, text);
  }
}

TEST(Unsnappy, RefusesWhatGoesOnBehindTheEnd) {
  for (const std::string& text : texts()) {
    std::string out(text.size(), '?');
    for (const char* more : {"x", "\x04yz", "\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01"})
      EXPECT_FALSE(unsnappy(packed(text) + more, out));
  }
}

TEST(Unsnappy, RefusesWhatTheLibraryRefuses) {
  std::mt19937_64 random(7);
  int refused = 0;
  for (const std::string& text : texts()) {
    const std::string stored = packed(text);
    for (int trial = 0; trial < 150; ++trial) {
      std::string damaged = stored;
      if (trial % 3 == 0) damaged.resize(random() % (stored.size() + 1));
      if (!damaged.empty()) damaged[random() % damaged.size()] ^= static_cast<char>(1 << random() % 8);
      if (damaged.size() > 8 && trial % 2 == 0) damaged[random() % 8] ^= static_cast<char>(1 << random() % 8);
      std::string out(text.size(), '?'), expected(text.size(), '?');
      size_t claimed = 0;
      const bool whole = snappy::GetUncompressedLength(damaged.data(), damaged.size(), &claimed) &&
                         claimed == text.size() &&
                         snappy::RawUncompress(damaged.data(), damaged.size(), expected.data());
      ASSERT_EQ(unsnappy(damaged, out), whole);
      if (whole) {
        EXPECT_EQ(out, expected);
      }
      refused += whole ? 0 : 1;
    }
  }
  EXPECT_GT(refused, 100);
}

TEST(SnappyExtents, ReadsSinglePlacesOfAStream) {
  int found = 0;
  for (const std::string& text : texts()) {
    const std::string stored = packed(text);
    parquet::SnappyExtents extents;
    if (text.empty() || !extents.find(stored, text.size())) continue;
    ++found;
    for (const size_t width : {size_t{1}, size_t{4}, size_t{8}})
      for (size_t at = 0; at + width <= text.size(); at += width * (1 + at % 3)) {
        std::string out(width, '?');
        extents.read(stored.data(), at, width, out.data());
        ASSERT_EQ(out, text.substr(at, width)) << at;
      }
  }
  EXPECT_GE(found, 3);  // random numbers, alone and with repetitions among them, and a single byte
}

// Each copy of a run reaches back into the one before it.
TEST(SnappyExtents, FollowsCopiesOfCopies) {
  const std::string text = "abc" + std::string(500, 'c') + "abc";
  const std::string stored = packed(text);
  parquet::SnappyExtents extents;
  ASSERT_TRUE(extents.find(stored, text.size()));
  for (size_t at = 0; at + 3 <= text.size(); ++at) {
    std::string out(3, '?');
    extents.read(stored.data(), at, 3, out.data());
    ASSERT_EQ(out, text.substr(at, 3)) << at;
  }
}

TEST(SnappyExtents, TakesNoStreamThatCannotBeUnpacked) {
  std::mt19937_64 random(11);
  std::string text = numbers(3000, UINT64_MAX, 5);
  text.insert(9000, text.substr(100, 60) + std::string(70, 'z'));
  const std::string stored = packed(text);
  int taken = 0, refused = 0;
  for (int trial = 0; trial < 3000; ++trial) {
    std::string damaged = stored;
    if (trial % 3 == 0) damaged.resize(random() % stored.size());
    for (int flips = trial % 4; flips > 0 && !damaged.empty(); --flips)
      damaged[random() % std::min<size_t>(damaged.size(), trial % 2 == 0 ? 10 : damaged.size())] ^=
          static_cast<char>(1 << random() % 8);
    parquet::SnappyExtents extents;
    std::string out(text.size(), '?'), read(text.size(), '?');
    const bool whole = unsnappy(damaged, out);
    if (!extents.find(damaged, text.size())) {
      ++refused;
      continue;
    }
    ASSERT_TRUE(whole);
    extents.read(damaged.data(), 0, read.size(), read.data());
    ASSERT_EQ(read, out);
    ++taken;
  }
  EXPECT_GT(taken, 100);
  EXPECT_GT(refused, 100);
}

}  // namespace
}  // namespace lockstep
