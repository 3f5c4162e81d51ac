// Batch: buffers of the columns' types, and names that are not there.
#include "data/source/source.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace lockstep {
namespace {

TEST(Batch, HoldsOneBufferPerColumn) {
  Batch batch({{"tokens", DType::kI32, {4}}, {"labels", DType::kF32, {}}}, 3);
  EXPECT_EQ(batch.bytes(0), 3 * 4 * 4);
  EXPECT_EQ(batch.bytes(1), 3 * 4);
  batch.record<int32_t>(0, 2)[1] = 42;
  EXPECT_EQ(batch.values<int32_t>(0)[2 * 4 + 1], 42);
  EXPECT_EQ(batch.index_of("labels"), 1u);
  EXPECT_THROW(batch.record<int64_t>(0, 0), InternalError);
}

TEST(Batch, RowsShareItsMemory) {
  Batch batch({{"tokens", DType::kI32, {4}}, {"labels", DType::kF32, {}}}, 5);
  Batch rows = batch.rows(2, 3);
  EXPECT_EQ(rows.records(), 3);
  EXPECT_EQ(rows.bytes(0), 3 * 4 * 4);
  rows.record<int32_t>(0, 1)[2] = 42;
  rows.record<float>(1, 2)[0] = 7;
  EXPECT_EQ(batch.values<int32_t>(0)[3 * 4 + 2], 42);
  EXPECT_EQ(batch.values<float>(1)[4], 7);
  EXPECT_THROW(batch.rows(3, 3), InternalError);
}

TEST(Batch, SuggestsTheNearestName) {
  const Batch batch({{"tokens", DType::kI32, {4}}}, 1);
  try {
    batch.index_of("token");
    FAIL();
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("tokens"), std::string::npos);
  }
}

}  // namespace
}  // namespace lockstep
