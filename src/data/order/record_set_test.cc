#include "data/order/record_set.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace lockstep {
namespace {

RecordSet every(int64_t step, int64_t records) {
  std::vector<uint64_t> bits(static_cast<size_t>((records + 63) / 64));
  for (int64_t r = 0; r < records; r += step) bits[static_cast<size_t>(r / 64)] |= uint64_t{1} << (r % 64);
  return {bits, records};
}

TEST(RecordSet, FindsTheIthRecord) {
  for (const int64_t records : {1, 63, 64, 65, 511, 512, 513, 5000})
    for (const int64_t step : {1, 2, 7, 600, 4000}) {
      const RecordSet set = every(step, records);
      ASSERT_EQ(set.size(), (records + step - 1) / step);
      for (int64_t i = 0; i < set.size(); ++i) {
        ASSERT_EQ(set[i], i * step) << records << " " << step;
        ASSERT_TRUE(set.contains(i * step));
      }
    }
}

TEST(RecordSet, AndItsComplementAreAll) {
  const RecordSet set = every(3, 1000);
  const RecordSet rest = set.complement();
  EXPECT_EQ(set.size() + rest.size(), 1000);
  for (int64_t i = 0; i < rest.size(); ++i) EXPECT_FALSE(set.contains(rest[i]));
}

TEST(RecordSet, IsKeptAsBytes) {
  const RecordSet set = every(5, 777);
  EXPECT_EQ(RecordSet::from_bytes(set.bytes(), 777).bytes(), set.bytes());
  EXPECT_THROW(RecordSet::from_bytes(set.bytes(), 7777), UserError);
}

TEST(RecordSet, CountsAndCopiesAgreeWithBits) {
  std::vector<uint64_t> bits(33);
  for (size_t i = 0; i < bits.size(); ++i) bits[i] = i % 5 == 3 ? 0 : 0x9e3779b97f4a7c15 * (i + 1);
  const RecordSet set(bits, 2100);
  std::vector<int64_t> members;
  for (int64_t record = 0; record < 2100; ++record) {
    EXPECT_EQ(set.before(record), static_cast<int64_t>(members.size())) << record;
    if (set.contains(record)) members.push_back(record);
  }
  EXPECT_EQ(set.before(2100), set.size());
  for (const int64_t first : {0, 1, 77, 500}) {
    std::vector<int64_t> some(300);
    set.copy(first, some);
    EXPECT_EQ(some, std::vector<int64_t>(members.begin() + first, members.begin() + first + 300)) << first;
  }
  const RecordSet few = set.first(77);
  EXPECT_EQ(few.size(), 77);
  EXPECT_EQ(few[76], members[76]);
  EXPECT_EQ(set.first(set.size()).bytes(), set.bytes());
  EXPECT_EQ((set & few).bytes(), few.bytes());
  EXPECT_EQ((set | few).bytes(), set.bytes());
  EXPECT_EQ((set & set.complement()).size(), 0);
  EXPECT_EQ(RecordSet::all(2100).complement().size(), 0);
}

}  // namespace
}  // namespace lockstep
