#include "data/order/read_order.h"

#include <gtest/gtest.h>

#include <numeric>
#include <set>

#include "base/error.h"
#include "data/order/step_order.h"

namespace lockstep {
namespace {

const OrderShape kShape{.block = 16, .lanes = 4, .window = 4};

std::vector<int64_t> records_of(const ReadOrder& order, int64_t first, int64_t count,
                                std::vector<int64_t>* epochs = nullptr) {
  std::vector<int64_t> records(static_cast<size_t>(count));
  std::iota(records.begin(), records.end(), first);
  order.records_at(records, epochs);
  return records;
}

TEST(ReadOrder, MixedSourcesHaveTheirShares) {
  const ReadOrder order(5, {1000, 200}, kShape, Shuffle::kBlock, {{0, {1, 3}}});
  EXPECT_EQ(order.size(), 1200);
  int64_t second = 0;
  std::vector<int64_t> epochs;
  const std::vector<int64_t> records = records_of(order, 0, 4096, &epochs);
  for (const int64_t record : records) second += record >= 1000 ? 1 : 0;
  EXPECT_NEAR(static_cast<double>(second), 3072, 2);
  // The small source has been read 15 times, and each time every record once.
  std::set<std::pair<int64_t, int64_t>> seen;
  for (size_t i = 0; i < records.size(); ++i)
    if (records[i] >= 1000 && !seen.insert({epochs[i], records[i]}).second)
      ADD_FAILURE() << "record " << records[i] << " is read twice in epoch " << epochs[i];
  EXPECT_EQ(seen.rbegin()->first, 15);
}

TEST(ReadOrder, AnyBatchOfAMixtureIsTheSame) {
  const ReadOrder order(5, {1000, 200, 50}, kShape, Shuffle::kGlobal, {{0, {1, 3, 0.5}}});
  const std::vector<int64_t> whole = records_of(order, 0, 6000);
  for (const int64_t batch : {1, 7, 100}) {
    std::vector<int64_t> found;
    for (int64_t first = 0; first < 6000; first += batch) {
      const std::vector<int64_t> some = records_of(order, first, std::min(batch, 6000 - first));
      found.insert(found.end(), some.begin(), some.end());
    }
    EXPECT_EQ(found, whole) << batch;
  }
  std::vector<int64_t> records;
  StepOrder(order, 20, 5).records(200, 3, records);
  EXPECT_EQ(records, std::vector<int64_t>(whole.begin() + 260, whole.begin() + 280));
}

TEST(ReadOrder, RefusesWeightsThatDoNotFit) {
  EXPECT_THROW(ReadOrder(5, {1000, 200}, kShape, Shuffle::kBlock, {{0, {1}}}), UserError);
  EXPECT_THROW(ReadOrder(5, {1000, 200}, kShape, Shuffle::kBlock, {{0, {0, 0}}}), UserError);
}

}  // namespace
}  // namespace lockstep
