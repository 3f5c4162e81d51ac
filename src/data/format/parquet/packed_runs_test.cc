// Small numbers in runs and packed groups: any stretch of them equals that of all, in every width.
#include "data/format/parquet/packed_runs.h"

#include <gtest/gtest.h>

#include <string>

#include "data/format/parquet/encodings.h"
#include "data/format/parquet/thrift.h"
#include "data/order/permutation.h"

namespace lockstep::parquet {
namespace {

uint32_t number(size_t i, int bits) { return static_cast<uint32_t>(mix64(i) & ((uint64_t{1} << bits) - 1)); }

// A run of 5 times the same, 3 groups, a run of 9, and groups for the rest, of which the last is not cut.
std::string encoded(const std::vector<uint32_t>& numbers, int bits) {
  std::string out;
  const auto head = [&](uint64_t value) {
    for (; value >= 128; value >>= 7) out += static_cast<char>(value | 128);
    out += static_cast<char>(value);
  };
  const auto run = [&](size_t count, uint32_t value) {
    head(count << 1);
    for (int k = 0; k < bits; k += 8) out += static_cast<char>(value >> k);
  };
  const auto groups = [&](size_t first, size_t count) {
    head((count + 7) / 8 << 1 | 1);
    std::vector<bool> set;
    for (size_t i = first; i < first + (count + 7) / 8 * 8; ++i)
      for (int k = 0; k < bits; ++k) set.push_back(i < numbers.size() && (numbers[i] >> k & 1) != 0);
    for (size_t i = 0; i < set.size(); i += 8) {
      int byte = 0;
      for (size_t k = 0; k < 8; ++k) byte |= static_cast<int>(set[i + k]) << k;
      out += static_cast<char>(byte);
    }
  };
  run(5, numbers[0]);
  groups(5, 24);
  run(9, numbers[29]);
  groups(38, numbers.size() - 38);
  return out;
}

std::vector<uint32_t> numbers_of(size_t count, int bits) {
  std::vector<uint32_t> numbers(count);
  for (size_t i = 0; i < count; ++i) numbers[i] = number(i < 5 ? 0 : i >= 29 && i < 38 ? 29 : i, bits);
  return numbers;
}

TEST(PackedRuns, AnyStretchEqualsThatOfAllInEveryWidth) {
  for (int bits = 1; bits <= 32; ++bits) {
    const std::vector<uint32_t> numbers = numbers_of(77, bits);
    const std::string bytes = encoded(numbers, bits);
    const std::string readable = bytes + std::string(kReadPast, '\x55');
    const std::string_view stored = std::string_view(readable).substr(0, bytes.size());
    const PackedRuns runs(stored, bits, numbers.size(), uint64_t{1} << bits);
    for (size_t first = 0; first < numbers.size(); ++first)
      for (size_t count = 0; first + count <= numbers.size(); ++count) {
        std::vector<uint32_t> out(count + 1, 7);
        // Only the bytes that it says it needs, and some behind them.
        const auto [begin, end] = runs.extent(first, count);
        const std::string part = bytes.substr(begin, end - begin) + std::string(kReadPast, '\x33');
        const uint32_t most = runs.copy(part.data() - begin, first, count, out.data());
        ASSERT_EQ(most, count == 0 ? 0 : *std::max_element(out.begin(), out.end() - 1));
        ASSERT_TRUE(std::equal(out.begin(), out.end() - 1, numbers.begin() + static_cast<int64_t>(first)))
            << bits << " bits, " << count << " from " << first;
        ASSERT_EQ(out.back(), 7);
      }
    std::vector<uint32_t> all;
    decode_rle(stored, bits, numbers.size(), all);
    EXPECT_EQ(all, numbers);
  }
}

TEST(PackedRuns, NumbersBeyondTheDictionaryAndBytesThatEndAreDamage) {
  const std::vector<uint32_t> numbers = numbers_of(64, 9);
  const std::string bytes = encoded(numbers, 9);
  const std::string readable = bytes + std::string(kReadPast, '\0');
  const uint32_t most = *std::max_element(numbers.begin(), numbers.end());
  EXPECT_NO_THROW(PackedRuns({readable.data(), bytes.size()}, 9, numbers.size(), most + 1));
  EXPECT_THROW(PackedRuns({readable.data(), bytes.size()}, 9, numbers.size(), most), Damaged);
  EXPECT_THROW(PackedRuns({readable.data(), bytes.size()}, 33, numbers.size(), most), Damaged);
  for (size_t size = 0; size < bytes.size(); ++size) {
    const std::string cut = bytes.substr(0, size) + std::string(kReadPast, '\0');
    if (size + 6 * 9 / 8 >= bytes.size()) break;  // the last six numbers are padding
    EXPECT_THROW(PackedRuns({cut.data(), size}, 9, numbers.size(), 512), Damaged) << size;
  }
}

TEST(PackedRuns, OneRunIsSeen) {
  EXPECT_TRUE(is_run_of(std::string("\x80\x02\x01", 3), 1, 128, 1));
  EXPECT_FALSE(is_run_of(std::string("\x80\x02\x00", 3), 1, 128, 1));
  EXPECT_FALSE(is_run_of(std::string("\x20\x01\x20\x00", 4), 1, 32, 1));
  EXPECT_THROW(is_run_of(std::string("\x20\x01", 2), 1, 17, 1), Damaged);
}

}  // namespace
}  // namespace lockstep::parquet
