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

}  // namespace
}  // namespace lockstep
