#include "comm/sum_program.h"

#include <gtest/gtest.h>

#include "base/dtype.h"
#include "comm/simd/sum_loops.h"
#include "comm/tree_testing.h"

namespace lockstep {
namespace {

using testing::expected_root;
using testing::partial_sums;
using testing::same_bits;

// Arithmetic in bf16: every result is rounded.
struct Bf16 {
  uint16_t bits = 0;

  Bf16() = default;
  explicit Bf16(int64_t value) : bits(to_bf16(static_cast<float>(value))) {}
  float wide() const { return from_bf16(bits); }
  friend Bf16 operator+(Bf16 a, Bf16 b) { return rounded(a.wide() + b.wide()); }
  friend Bf16 operator*(Bf16 a, Bf16 b) { return rounded(a.wide() * b.wide()); }
  static Bf16 rounded(float value) {
    Bf16 result;
    result.bits = to_bf16(value);
    return result;
  }
};

template <typename T>
bool reduces_to_the_root(const LeafSplit& split, SumType type, int64_t count, bool streaming) {
  const SumProgram program(split);
  std::vector<std::vector<T>> buffers;
  for (int rank = 0; rank < split.ranks(); ++rank)
    for (auto& sum : partial_sums<T>(split, rank, count)) buffers.push_back(std::move(sum));
  std::vector<const std::byte*> sources;
  for (const auto& buffer : buffers) sources.push_back(reinterpret_cast<const std::byte*>(buffer.data()));
  std::vector<T> other(static_cast<size_t>(count));
  const std::vector<std::byte*> outputs = {reinterpret_cast<std::byte*>(buffers.back().data()),
                                           reinterpret_cast<std::byte*>(other.data())};
  program.run(type, sources, outputs, count, streaming);
  const auto expected = expected_root<T>(split.leaves(), count);
  return same_bits(buffers.back().data(), expected) && same_bits(other.data(), expected);
}

TEST(SumProgram, SearchedSplitsGiveTheBitsOfOneRank) {
  for (int64_t leaves = 1; leaves <= 16; ++leaves)
    for (int ranks = 1; ranks <= leaves; ++ranks) {
      const LeafSplit split = LeafSplit::search(leaves, ranks);
      EXPECT_TRUE(reduces_to_the_root<float>(split, SumType::kF32, 37, false)) << split.text();
      EXPECT_TRUE(reduces_to_the_root<Bf16>(split, SumType::kBF16, 37, false)) << split.text();
    }
}

TEST(SumProgram, AnySplitGivesTheBitsOfOneRank) {
  for (const int64_t leaves : {5, 6, 7, 8, 11, 12, 13, 16})
    for (int64_t cuts = 0; cuts<(int64_t{1} << (leaves - 1)); cuts += leaves> 12 ? 5 : 1) {
      std::vector<int64_t> ends;
      for (int64_t leaf = 1; leaf < leaves; ++leaf)
        if ((cuts >> (leaf - 1)) & 1) ends.push_back(leaf);
      ends.push_back(leaves);
      const LeafSplit split(leaves, ends);
      ASSERT_TRUE(reduces_to_the_root<float>(split, SumType::kF32, 3, false)) << split.text();
    }
}

TEST(SumProgram, EveryTypeAndSeveralBlocks) {
  for (const int ranks : {1, 2, 3, 5, 8, 16}) {
    const LeafSplit split = LeafSplit::search(16, ranks);
    for (const int64_t count : {1, 1023, 1024, 1025, 5000}) {
      for (const bool streaming : {false, true})
        EXPECT_TRUE(reduces_to_the_root<float>(split, SumType::kF32, count, streaming)) << split.text();
      for (const bool streaming : {false, true})
        EXPECT_TRUE(reduces_to_the_root<Bf16>(split, SumType::kBF16, count, streaming)) << split.text();
      EXPECT_TRUE(reduces_to_the_root<int64_t>(split, SumType::kI64, count, count > 1024)) << split.text();
    }
  }
}

TEST(SumProgram, LoneChildKeepsItsSign) {
  // A lone child that was added to zero would turn -0 into +0.
  const LeafSplit split = LeafSplit::one_each(3);
  const float minus_zero = -0.0F;
  const auto* source = reinterpret_cast<const std::byte*>(&minus_zero);
  const std::vector<const std::byte*> sources(3, source);
  float root = 1;
  const std::vector<std::byte*> outputs = {reinterpret_cast<std::byte*>(&root)};
  SumProgram(split).run(SumType::kF32, sources, outputs, 1, false);
  EXPECT_EQ(std::bit_cast<uint32_t>(root), std::bit_cast<uint32_t>(minus_zero));
}

// As base/dtype.h rounds, which is what backends do.
TEST(SumLoops, Bf16SumsAreRoundedToNearestWithOneNan) {
  std::vector<uint16_t> a, b, into(1 << 16);
  for (uint32_t bits = 0; bits < (1 << 16); ++bits) {
    a.push_back(static_cast<uint16_t>(bits));
    b.push_back(static_cast<uint16_t>(bits * 40503u + 77));
  }
  comm::sum_loops().add2_bf16(into.data(), a.data(), b.data(), static_cast<int64_t>(into.size()));
  for (size_t i = 0; i < into.size(); ++i)
    ASSERT_EQ(into[i], to_bf16(from_bf16(a[i]) + from_bf16(b[i]))) << a[i] << " + " << b[i];
}

TEST(SumLoops, StreamsAnyBytesFromAndToAnyAddress) {
  std::vector<uint8_t> from(700);
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<uint8_t>(i * 7 + 1);
  for (const size_t offset : {0, 1, 31, 63})
    for (const int64_t bytes : {0, 1, 63, 64, 65, 500}) {
      std::vector<uint8_t> into(700, 0);
      comm::sum_loops().stream(into.data() + offset, from.data() + 3, bytes);
      for (size_t i = 0; i < into.size(); ++i) {
        const bool inside = i >= offset && i < offset + static_cast<size_t>(bytes);
        ASSERT_EQ(into[i], inside ? from[3 + i - offset] : 0) << offset << " " << bytes << " " << i;
      }
    }
}

}  // namespace
}  // namespace lockstep
