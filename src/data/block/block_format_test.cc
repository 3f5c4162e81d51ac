// Our own columnar files: what is written is read, in any range and choice of columns, and every damage is
// named.
#include "data/block/block_format.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/test_folder.h"
#include "data/block/block_layout.h"
#include "data/shards/formats.h"
#include "data/shards/shard_set.h"
#include "data/testing/test_blocks.h"

namespace lockstep {
namespace {

std::string written(const ColumnBlock& block, Codec compression = Codec::kZstd) {
  return written_file("block", block, compression);
}

ShardSet set_of(const std::string& text, const FormatOptions& options = {}, double most_bad = 0) {
  std::vector<std::unique_ptr<ByteSource>> shards;
  shards.push_back(open_text("t.block", text));
  return ShardSet(make_block_format(options), std::move(shards), {.most_bad = most_bad});
}

std::string message_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

TEST(BlockFormat, HoldsEveryTypeInEveryCompression) {
  const ColumnBlock block = mixed_block(5000);
  for (const Codec compression : {Codec::kNone, Codec::kLz4, Codec::kZstd}) {
    const ShardSet set = set_of(written(block, compression));
    EXPECT_EQ(set.fields(), block.fields());
    EXPECT_EQ(set.manifest().records(), 5000);
    EXPECT_EQ(printed(set, 0, 5000), printed(block, 0, 5000)) << name_of(compression);
  }
}

TEST(BlockFormat, AnyRangeEqualsTheWhole) {
  const ColumnBlock block = mixed_block(3000);
  const ShardSet set = set_of(written(block));
  for (const auto& [first, count] : std::vector<std::pair<int64_t, int64_t>>{
           {0, 1}, {2999, 1}, {255, 2}, {1000, 1500}, {511, 1}, {512, 512}, {7, 2993}})
    EXPECT_EQ(printed(set, first, count), printed(block, first, count)) << first << " " << count;
}

TEST(BlockFormat, TheSameRecordsInOtherPiecesAreTheSameBytes) {
  const ColumnBlock block = mixed_block(5000);
  const std::string whole = written(block);
  const auto writer = make_table_writer("block", block.fields(), {});
  std::string text;
  const ShardSet set = set_of(whole);
  BlockScratch scratch;
  StageCounters counters;
  for (int64_t first = 0; first < 5000; first += 617) {
    set.load(first, std::min<int64_t>(617, 5000 - first), scratch, counters);
    writer->append(scratch.block, text);
  }
  writer->finish(text);
  EXPECT_EQ(text, whole);
}

TEST(BlockFormat, OnlyWantedColumnsAreRead) {
  const ColumnBlock block = mixed_block(2000);
  const std::string whole = written(block, Codec::kNone);
  const ShardSet all = set_of(whole);
  const ShardSet set = set_of(whole, {{{"name", ValueType::kBytes, 1}, {"n", ValueType::kF64, 1}}});
  ASSERT_EQ(set.fields().size(), 2u);
  EXPECT_EQ(set.fields()[1].type, ValueType::kI64) << "a number keeps the type of the file";
  BlockScratch scratch;
  StageCounters counters;
  set.load(10, 500, scratch, counters);
  EXPECT_EQ(scratch.block.columns[1].as<int64_t>()[3], block.column("n").as<int64_t>()[13]);
  EXPECT_EQ(scratch.block.columns[0].as<std::string_view>()[499],
            block.column("name").as<std::string_view>()[509]);
}

TEST(BlockFormat, ColumnsThatAreNotThereAreNamed) {
  const std::string text = written(mixed_block(10));
  EXPECT_EQ(message_of([&] {
              set_of(text, {{{"nam", ValueType::kBytes, 1}}});
            }),
            "t.block: there is no column 'nam'; did you mean name?");
  EXPECT_EQ(message_of([&] {
              set_of(text, {{{"name", ValueType::kF64, 1}}});
            }),
            "t.block: column 'name' holds text; name it as categorical, or write it as numbers");
  EXPECT_EQ(message_of([&] { set_of(text, {{}, {{"level", "3"}}}); }), "block has no setting 'level'");
}

TEST(BlockFormat, ATruncatedFileIsRefusedAtEveryLength) {
  const std::string text = written(mixed_block(40));
  for (size_t length = 0; length < text.size(); ++length)
    EXPECT_THROW(set_of(text.substr(0, length)), UserError) << length;
}

TEST(BlockFormat, EveryFlippedByteIsNoticed) {
  const ColumnBlock block = mixed_block(40);
  const std::string text = written(block);
  for (size_t at = 0; at < text.size(); ++at) {
    std::string damaged = text;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    const std::string message = message_of([&] { printed(set_of(damaged), 0, 40); });
    EXPECT_TRUE(message.starts_with("t.block")) << at << ": " << message;
  }
}

TEST(BlockFormat, ADamagedBlockIsNamedOrLeftOut) {
  const ColumnBlock block = mixed_block(5000);
  std::string text = written(block);
  const auto whole = open_text("t.block", text);
  const BlockFooter footer = read_block_footer(*whole);
  ASSERT_GE(footer.blocks.size(), 4u);
  const StoredChunk chunk = footer.blocks[2].chunks[1];
  text[static_cast<size_t>(chunk.offset)] ^= 1;
  EXPECT_EQ(
      message_of([&] { printed(set_of(text), 0, 5000); }),
      fmt::format("t.block at byte {} (block 2): the hash of column 'n' is wrong; the file is damaged or "
                  "has changed, write it again",
                  chunk.offset));

  const int64_t size = footer.block_records;
  const ShardSet set = set_of(text, {{}, {}, BadRecords::kSkip}, 0.5);
  EXPECT_EQ(set.manifest().records(), 5000 - size);
  EXPECT_EQ(printed(set, 0, 5000 - size),
            printed(block, 0, 2 * size) + printed(block, 3 * size, 5000 - 3 * size));
  ASSERT_EQ(set.bad_records().size(), 1u);
  EXPECT_EQ(set.describe(2 * size + 1),
            fmt::format("t.block record {} (block 3 at byte {})", 3 * size + 1, footer.blocks[3].offset));
  EXPECT_EQ(
      message_of([&] {
        set_of(text, {{}, {}, BadRecords::kSkip}, 0.01);
      }).substr(0, 60),
      fmt::format("{} of 5000 records cannot be used, more than the share of 0.01 that is allowed", size)
          .substr(0, 60));
}

// A footer whose hash is right may still lie.
TEST(BlockFormat, SizesThatLieAreRefused) {
  const ColumnBlock block = mixed_block(40);
  const std::string text = written(block);
  const BlockFooter footer = read_block_footer(*open_text("t.block", text));
  const auto with = [&](const std::function<void(BlockFooter&)>& change) {
    BlockFooter changed = footer;
    change(changed);
    const std::string body = text.substr(0, static_cast<size_t>(footer.blocks.back().end()));
    return message_of([&] { printed(set_of(body + to_bytes(changed)), 0, 40); });
  };
  EXPECT_EQ(with([](BlockFooter&) {}), "no error");
  EXPECT_NE(with([](BlockFooter& f) { f.blocks[0].chunks[0].raw = 1u << 27; }).find("does not unpack to"),
            std::string::npos);
  EXPECT_NE(with([](BlockFooter& f) { f.blocks[0].chunks[0].raw = ~0u; }).find("a chunk of 4294967295 bytes"),
            std::string::npos);
  EXPECT_NE(with([](BlockFooter& f) { f.blocks[0].chunks[0].stored += 9; }).find("the footer begins at"),
            std::string::npos);
  EXPECT_NE(with([](BlockFooter& f) { f.blocks[0].records = 39; }), "no error");
  EXPECT_NE(with([](BlockFooter& f) { f.blocks[0].records = 41; }), "no error");
  EXPECT_NE(with([](BlockFooter& f) { f.fields[0].width = 2; }).find("ends too early"), std::string::npos);
}

TEST(BlockFormat, AnotherVersionIsNamed) {
  std::string text = written(mixed_block(4));
  text[kBlockMagic.size() - 1] = '2';
  EXPECT_NE(message_of([&] { set_of(text); }).find("version 2; this program reads version 1"),
            std::string::npos);
  EXPECT_NE(message_of([&] { set_of(std::string(100, 'x')); }).find("not a block file"), std::string::npos);
}

// The offsets of the index are those of the file as it was.
TEST(BlockFormat, AFileThatChangesIsIndexedAgain) {
  const TestFolder folder;
  folder.write("t.block", written(mixed_block(700)));
  const auto open = [&] {
    return ShardSet(make_block_format({}), std::vector<std::string>{folder.path("t.block")}, {});
  };
  const std::string before = open().fingerprint();
  const ShardSet opened = open();
  folder.write("t.block", written(mixed_block(900)));
  EXPECT_EQ(open().manifest().records(), 900);
  EXPECT_NE(open().fingerprint(), before);
  EXPECT_EQ(printed(opened, 0, 700), printed(mixed_block(700), 0, 700)) << "the old file is still open";
}

}  // namespace
}  // namespace lockstep
