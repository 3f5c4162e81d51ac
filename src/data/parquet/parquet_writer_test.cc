// What the Parquet writer writes, the Parquet reader reads: in every compression, for repeated and distinct
// values, over several row groups.
#include <gtest/gtest.h>

#include "base/error.h"
#include "data/parquet/parquet_format.h"
#include "data/shards/formats.h"
#include "data/testing/test_blocks.h"

namespace lockstep {
namespace {

ShardSet set_of(const std::string& bytes) {
  std::vector<std::unique_ptr<ByteSource>> shards;
  shards.push_back(open_text("t.parquet", bytes));
  return ShardSet(make_parquet_format({}), std::move(shards), {});
}

TEST(ParquetWriter, IsReadInEveryCompression) {
  const ColumnBlock block = mixed_block(9000, true);
  for (const Codec compression : {Codec::kNone, Codec::kSnappy, Codec::kGzip, Codec::kZstd, Codec::kLz4}) {
    const ShardSet set = set_of(written_file("parquet", block, compression));
    ASSERT_EQ(set.manifest().records(), 9000);
    EXPECT_EQ(printed(set, 0, 9000), printed(block, 0, 9000)) << name_of(compression);
    EXPECT_EQ(printed(set, 8100, 200), printed(block, 8100, 200));
  }
}

TEST(ParquetWriter, CutsRowGroupsTheSameForAnyBlocks) {
  const ColumnBlock block = mixed_block(1000, true);
  std::string pieces;
  const auto writer = make_table_writer("parquet", block.fields());
  for (int i = 0; i < 140; ++i) writer->append(block, pieces);
  writer->finish(pieces);
  const ShardSet set = set_of(pieces);
  ASSERT_EQ(set.manifest().records(), 140000);
  EXPECT_EQ(printed(set, 65400, 300), printed(block, 400, 300));
  EXPECT_EQ(printed(set, 139990, 10), printed(block, 990, 10));
  EXPECT_EQ(set.describe(139999), "t.parquet record 139999 (row group 2)");
}

TEST(ParquetWriter, BlocksAreAsLongAsPages) {
  const ColumnBlock block = mixed_block(1000, true);
  std::string pieces;
  const auto writer = make_table_writer("parquet", block.fields());
  for (int i = 0; i < 66; ++i) writer->append(block, pieces);
  writer->finish(pieces);
  const ShardSet set = set_of(pieces);
  const int64_t usual = set.manifest().block_records();
  EXPECT_LT(usual, 8192);
  EXPECT_GT(set.block_records(), usual);
  EXPECT_EQ(set.order_window(), std::max<int64_t>(4, 64 * usual / set.block_records()));
  const ShardSet few = set_of(written_file("parquet", mixed_block(20, true)));
  EXPECT_EQ(few.order_window(), 64 * few.manifest().block_records() / few.block_records());
}

TEST(ParquetWriter, ValuesThatAreAllMissingOrAllEqual) {
  ColumnBlock block;
  block.reset({{"none", ValueType::kBytes, 1}, {"same", ValueType::kI64, 1}});
  block.records = 20;
  block.columns[0].as<std::string_view>().resize(20);
  block.columns[0].missing.assign(20, 1);
  block.columns[1].as<int64_t>().assign(20, -7);
  const ShardSet set = set_of(written_file("parquet", block));
  EXPECT_EQ(printed(set, 0, 20), printed(block, 0, 20));
}

TEST(ParquetWriter, RefusesWhatItCannotHold) {
  EXPECT_THROW(make_table_writer("parquet", {{"image", ValueType::kU8, 300}}), UserError);
  EXPECT_THROW(make_table_writer("parquet", {}), UserError);
}

}  // namespace
}  // namespace lockstep
