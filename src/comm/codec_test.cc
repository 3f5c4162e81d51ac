// Gradients in coded form: what coding does to numbers, and that sums of coded gradients do not depend on who
// makes which of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "comm/leaf_stack.h"
#include "comm/ranks_testing.h"
#include "comm/simd/codec_loops.h"
#include "comm/ucx/ranks_testing.h"
#include "comm/wire/wire_testing.h"

namespace lockstep {
namespace {

using comm::codec_loops;
using comm::CodecLoops;
using comm::kInt8Bytes;
using comm::kInt8Group;
using comm::kInt8Values;
using Floats = std::vector<float>;

// Of widely different magnitudes from group to group, as gradients of different rows are.
Floats leaf(int64_t number, int64_t blocks) {
  Floats values(static_cast<size_t>(blocks * kInt8Values));
  uint64_t state = static_cast<uint64_t>(number) * 0x9E3779B97F4A7C15U + 1;
  for (size_t i = 0; i < values.size(); ++i) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    const auto whole = static_cast<float>(static_cast<int32_t>(state >> 33) - (1 << 30));
    values[i] = std::ldexp(whole, -30 - static_cast<int>(i / kInt8Group * 7 % 40));
  }
  return values;
}

Floats through_int8(const Floats& values) {
  const auto blocks = static_cast<int64_t>(values.size()) / kInt8Values;
  std::vector<std::byte> coded(static_cast<size_t>(blocks * kInt8Bytes));
  Floats back(values.size());
  codec_loops().encode_int8(coded.data(), values.data(), blocks);
  codec_loops().decode_int8(back.data(), coded.data(), blocks);
  return back;
}

TEST(Codec, Int8IsWithinHalfAStepOfEveryValue) {
  const Floats values = leaf(3, 4), back = through_int8(values);
  for (size_t begin = 0; begin < values.size(); begin += kInt8Group) {
    float largest = 0;
    for (size_t i = begin; i < begin + kInt8Group; ++i) largest = std::max(largest, std::fabs(values[i]));
    // The scale has 8 bits behind the point, rounded up.
    const float step = largest / 127 * (1 + 1.0f / 256);
    for (size_t i = begin; i < begin + kInt8Group; ++i)
      ASSERT_LE(std::fabs(values[i] - back[i]), step * 0.5001f) << i;
  }
}

TEST(Codec, CodingWhatWasDecodedChangesNothing) {
  for (int64_t number = 0; number < 50; ++number) {
    const Floats once = through_int8(leaf(number, 1));
    EXPECT_EQ(through_int8(once), once) << number;
  }
  // Scales at the borders of what an f32 holds.
  for (const float extreme : {1e-37f, 1e-30f, 1.0f, 126.5f, 127.0f, 1e30f, 3e38f}) {
    Floats values = leaf(1, 1);
    values[5] = extreme;
    const Floats once = through_int8(values);
    EXPECT_EQ(through_int8(once), once) << extreme;
  }
}

TEST(Codec, WhatIsTooSmallIsZero) {
  Floats values(kInt8Values, 1e-39f);
  EXPECT_EQ(through_int8(values), Floats(kInt8Values, 0.0f));
}

// The guard looks at the norm of what comes out.
TEST(Codec, NumbersThatAreNotFiniteStayVisible) {
  for (const float bad : {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
                          std::numeric_limits<float>::quiet_NaN()}) {
    Floats values(kInt8Values, 1.0f), zeros(kInt8Values, 0.0f);
    values[70] = bad;
    const Floats back = through_int8(values);
    for (int64_t i = 0; i < kInt8Values; ++i) {
      const bool of_the_group = i / kInt8Group == 70 / kInt8Group;
      EXPECT_EQ(std::isnan(back[static_cast<size_t>(i)]), of_the_group) << i;
    }
    float* const terms[] = {zeros.data(), values.data()};
    codec_loops().merge_int8(terms, 2, kInt8Values);
    EXPECT_TRUE(std::isnan(zeros[70]));

    Floats rounded(kInt8Values, 0.0f);
    values.assign(kInt8Values, 1.0f);
    values[70] = bad;
    float* const in_bf16[] = {rounded.data(), values.data()};
    codec_loops().merge_bf16(in_bf16, 2, kInt8Values);
    EXPECT_FALSE(std::isfinite(rounded[70]));
    EXPECT_EQ(rounded[71], 1.0f);
  }
}

// A sum beyond the largest f32 is not finite either.
TEST(Codec, AnOverflowStaysVisible) {
  Floats a(kInt8Values, 3e38f), b(kInt8Values, 3e38f);
  float* const terms[] = {a.data(), b.data()};
  codec_loops().merge_int8(terms, 2, kInt8Values);
  for (const float value : a) EXPECT_FALSE(std::isfinite(value));
}

TEST(Codec, InstructionSetsAgree) {
  if (!__builtin_cpu_supports("avx512bw") || !__builtin_cpu_supports("avx512vl"))
    GTEST_SKIP() << "this processor has one set alone";
  const Floats values = leaf(9, 3);
  const auto run = [&](const CodecLoops& loops) {
    std::vector<std::byte> coded(3 * kInt8Bytes), sum(3 * kInt8Bytes);
    loops.encode_int8(coded.data(), values.data(), 3);
    const Floats other = leaf(10, 3);
    std::vector<std::byte> second(3 * kInt8Bytes);
    loops.encode_int8(second.data(), other.data(), 3);
    loops.add2_int8(sum.data(), coded.data(), second.data(), 3);
    std::vector<uint16_t> narrow(values.size());
    loops.encode_bf16(narrow.data(), values.data(), static_cast<int64_t>(values.size()));
    return std::tuple(coded, sum, narrow);
  };
  EXPECT_EQ(run(comm::avx2::codec_loops), run(comm::avx512::codec_loops));
}

std::vector<uint16_t> top(const Floats& values, int64_t k) {
  std::vector<uint16_t> found(static_cast<size_t>(k));
  codec_loops().select_top(found.data(), values.data(), k);
  return found;
}

TEST(Codec, TheLargestAreChosenAndOfEqualOnesTheFirst) {
  for (int64_t number = 0; number < 20; ++number) {
    Floats values = leaf(number, 1);
    if (number % 2 == 0)  // many of the same magnitude
      for (float& value : values) value = std::round(value * 4);
    std::vector<uint16_t> order(values.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<uint16_t>(i);
    std::stable_sort(order.begin(), order.end(),
                     [&](uint16_t a, uint16_t b) { return std::fabs(values[a]) > std::fabs(values[b]); });
    for (const int64_t k : {1, 10, 103, 1024}) {
      std::vector<uint16_t> expected(order.begin(), order.begin() + k);
      std::sort(expected.begin(), expected.end());
      EXPECT_EQ(top(values, k), expected) << k;
    }
  }
  Floats values(kInt8Values, 1.0f);
  values[900] = std::numeric_limits<float>::quiet_NaN();
  values[700] = std::numeric_limits<float>::infinity();
  EXPECT_EQ(top(values, 2), (std::vector<uint16_t>{700, 900}));
}

TEST(Codec, AResidualThatIsNotFiniteIsSeen) {
  Floats residual(kInt8Values, 1.0f), gradient(kInt8Values, 2.0f);
  EXPECT_TRUE(codec_loops().add_residual(residual.data(), gradient.data(), kInt8Values));
  EXPECT_EQ(residual, Floats(kInt8Values, 3.0f));
  gradient[1000] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_FALSE(codec_loops().add_residual(residual.data(), gradient.data(), kInt8Values));
}

// ---- sums on any number of ranks ----

struct Coding {
  SumType type;
  void (*merge)(float* const*, int64_t, int64_t);
};
const Coding kCodings[] = {{SumType::kBF16, codec_loops().merge_bf16},
                           {SumType::kInt8, codec_loops().merge_int8}};

std::vector<std::byte> coded(const Coding& coding, const Floats& values) {
  const auto count = static_cast<int64_t>(values.size());
  std::vector<std::byte> result(static_cast<size_t>(elements_in(coding.type, count) * size_of(coding.type)));
  if (coding.type == SumType::kBF16)
    codec_loops().encode_bf16(reinterpret_cast<uint16_t*>(result.data()), values.data(), count);
  else
    codec_loops().encode_int8(result.data(), values.data(), count / kInt8Values);
  return result;
}

// What a worker has of a range of leaves: its maximal subtrees, as decoded values.
std::vector<Floats> merged(const Coding& coding, LeafRange range, int64_t leaves, int64_t blocks) {
  std::vector<Floats> slots;
  LeafStack stack(leaves);
  for (int64_t number = range.begin; number < range.end; ++number) {
    slots.push_back(leaf(number, blocks));
    const auto last = static_cast<int64_t>(slots.size()) - 1;
    stack.push({number, number + 1}, [](int64_t, int64_t) {});
    const int64_t first = stack.next_slot() - 1;
    std::vector<float*> terms;
    for (int64_t slot = first; slot <= last; ++slot) terms.push_back(slots[static_cast<size_t>(slot)].data());
    coding.merge(terms.data(), static_cast<int64_t>(terms.size()), blocks * kInt8Values);
    slots.resize(static_cast<size_t>(first) + 1);
  }
  return slots;
}

// On every rank, by all_reduce and by reduce_scatter of its slice.
void expect_root(Group& group, const Coding& coding, int64_t blocks) {
  const int64_t leaves = group.split().leaves();
  const std::vector<std::byte> root = coded(coding, merged(coding, {0, leaves}, leaves, blocks)[0]);
  const auto own = merged(coding, group.split().range(group.rank()), leaves, blocks);
  const auto bytes = static_cast<int64_t>(root.size());
  const SharedBuffer memory = group.allocate(static_cast<int64_t>(own.size()) * bytes);
  std::vector<void*> partials;
  const auto fill = [&] {
    partials.clear();
    for (size_t i = 0; i < own.size(); ++i) {
      const std::vector<std::byte> one = coded(coding, own[i]);
      partials.push_back(memory.data() + static_cast<int64_t>(i) * bytes);
      std::memcpy(partials.back(), one.data(), one.size());
    }
  };
  const Reduction reduction{.type = coding.type, .count = elements_in(coding.type, blocks * kInt8Values)};
  const auto with = [&](Reduction one) {
    fill();
    one.partials = partials;
    return one;
  };
  group.all_reduce(with(reduction));
  EXPECT_EQ(std::memcmp(memory.data(), root.data(), root.size()), 0) << name_of(coding.type);
  group.reduce_scatter(with(reduction));
  const Slice values = slice_of(blocks * kInt8Values, group.size(), group.rank());
  const int64_t begin = elements_in(coding.type, values.begin) * size_of(coding.type);
  const int64_t end = elements_in(coding.type, values.end) * size_of(coding.type);
  EXPECT_EQ(std::memcmp(memory.data() + begin, root.data() + begin, static_cast<size_t>(end - begin)), 0)
      << name_of(coding.type);
}

TEST(CodedSums, SharedMemoryGivesTheBitsOfOneRank) {
  for (const int64_t leaves : {5, 8})
    for (int ranks = 1; ranks <= 5; ++ranks)
      testing::on_threads(LeafSplit::search(leaves, ranks), [&](Group& group) {
        for (const Coding& coding : kCodings)
          for (const int64_t blocks : {1, 7, 300}) expect_root(group, coding, blocks);
      });
}

TEST(CodedSums, AnySplitGivesTheBitsOfOneRank) {
  for (int64_t cuts = 0; cuts < 1 << 6; cuts += 3) {
    std::vector<int64_t> ends;
    for (int64_t number = 1; number < 7; ++number)
      if ((cuts >> (number - 1) & 1) != 0) ends.push_back(number);
    ends.push_back(7);
    testing::on_threads(LeafSplit(7, ends), [&](Group& group) {
      for (const Coding& coding : kCodings) expect_root(group, coding, 3);
    });
  }
}

TEST(CodedSums, HostsGiveTheBitsOfOneRank) {
  for (const auto& map : testing::all_host_maps(4))
    testing::on_hosts(map, LeafSplit::search(8, 4), [&](Group& group) {
      for (const Coding& coding : kCodings)
        for (const int64_t blocks : {1, 300}) expect_root(group, coding, blocks);
    });
}

TEST(CodedSums, UcxGivesTheBitsOfOneRank) {
  for (const int ranks : {2, 3})
    testing::on_ucx_groups(LeafSplit::search(8, ranks), [&](Group& group) {
      for (const Coding& coding : kCodings)
        for (const int64_t blocks : {1, 300}) expect_root(group, coding, blocks);
    });
}

// Two ranks send half of the partial sums and half of the root each: M in all.
TEST(CodedSums, BytesOnTheWireAreThoseOfTheCode) {
  testing::on_ucx_groups(LeafSplit::search(8, 2), [&](Group& group) {
    constexpr int64_t kBlocks = 1024;
    const int64_t values = kBlocks * kInt8Values;
    for (const auto& [type, bytes] : {std::pair{SumType::kF32, values * 4},
                                      {SumType::kBF16, values * 2},
                                      {SumType::kInt8, values * 33 / 32}}) {
      const SharedBuffer memory = group.allocate(bytes);
      void* const partial = memory.data();
      group.barrier();
      const int64_t before = group.network_bytes();
      group.all_reduce({.type = type, .count = elements_in(type, values), .partials = {&partial, 1}});
      const int64_t sent = group.network_bytes() - before;
      EXPECT_GE(sent, bytes) << name_of(type);
      EXPECT_LE(sent, bytes + (16 << 10)) << name_of(type);  // notices
    }
  });
}

}  // namespace
}  // namespace lockstep
