// Text files: windows, the shift by one, many and compressed files, little memory, and holding records out.
#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.h"
#include "base/test_folder.h"
#include "data/open/corpus.h"
#include "data/source/wrapped_source.h"
#include "data/testing/test_compression.h"

namespace lockstep {
namespace {

TEST(Text, WindowsAreShiftedByOne) {
  const TestFolder folder;
  folder.write("b.txt", "6789");
  folder.write("a/x.txt", "012345");
  const auto opened = open_text_files({.seq = 3}, {folder.path()});
  const Source& source = *opened;
  EXPECT_EQ(source.size(), 3);  // 10 bytes hold 3 windows of 3 + 1
  Batch batch(source.columns(), 2);
  source.fill(std::vector<int64_t>{1, kNoRecord}, batch);
  const auto tokens = batch.values<int32_t>(batch.index_of("tokens"));
  const auto targets = batch.values<int32_t>(batch.index_of("targets"));
  EXPECT_EQ(std::vector<int32_t>(tokens.begin(), tokens.end()),
            (std::vector<int32_t>{'3', '4', '5', 0, 0, 0}));
  EXPECT_EQ(std::vector<int32_t>(targets.begin(), targets.end()),
            (std::vector<int32_t>{'4', '5', '6', -100, -100, -100}));
  EXPECT_EQ(source.describe(1), folder.path("a/x.txt") + " at byte 3");
  EXPECT_EQ(source.describe(2), folder.path("b.txt") + " at byte 0");
}

TEST(Text, SlicesMoveTheRecords) {
  const TestFolder folder;
  folder.write("x", "0123456789");
  const auto source = open_text_files({.seq = 3}, {folder.path("x")});
  const SliceSource slice(source, 2, 1);
  EXPECT_EQ(slice.size(), 1);
  Batch batch(slice.columns(), 2);
  slice.fill(std::vector<int64_t>{kNoRecord, 0}, batch);
  EXPECT_EQ(batch.values<int32_t>(0)[3], '6');
  EXPECT_EQ(batch.values<int32_t>(1)[0], kIgnoredLabel);
  EXPECT_EQ(slice.describe(0), source->describe(2));
  EXPECT_NE(slice.fingerprint(), source->fingerprint());
}

TEST(Text, BytesAbove127AreTokensToo) {
  const TestFolder folder;
  folder.write("x", "\xff\xfe\x80");
  const auto opened = open_text_files({.seq = 2}, {folder.path("x")});
  const Source& source = *opened;
  Batch batch(source.columns(), 1);
  source.fill(std::vector<int64_t>{0}, batch);
  EXPECT_EQ(batch.values<int32_t>(0)[0], 255);
  EXPECT_EQ(batch.values<int32_t>(1)[1], 128);
}

TEST(Text, RefusesTooLittle) {
  const TestFolder folder;
  folder.write("x", "0123456789");
  EXPECT_EQ(open_text_files({.seq = 9}, {folder.path("x")})->size(), 1);
  try {
    open_text_files({.seq = 10}, {folder.path("x")});
    FAIL();
  } catch (const UserError& error) {
    EXPECT_TRUE(std::string(error.what()).starts_with(folder.path("x") + ": the text has 10 bytes, too few"));
  }
}

// The windows of the bytes that all files have together, as they were before they were compressed.
TEST(Text, ManyFilesAreOneTextAlsoCompressedAndInLittleMemory) {
  const TestFolder folder;
  std::string whole;
  for (int part = 0; part < 40; ++part) {
    std::string text;
    for (int i = 0; i < 20000 + part * 37; ++i)
      text += static_cast<char>('a' + (i * (part + 3) + i / 7) % 26);
    whole += text;
    const std::string name = fmt::format("in/{:02}.txt", part);
    if (part % 3 == 0)
      folder.write(name + ".gz", gzipped(text));
    else if (part % 3 == 1)
      folder.write(name + ".zst", zstd_frame(text));
    else
      folder.write(name, text);
  }
  constexpr int64_t kSeq = 64;
  constexpr int64_t kBudget = 4 << 20;
  const auto source = open_text_files({.seq = kSeq, .budget = kBudget}, {folder.path("in")});
  ASSERT_EQ(source->size(), (static_cast<int64_t>(whole.size()) - 1) / kSeq);
  Batch batch(source->columns(), 1);
  for (int64_t i = 0; i < source->size(); ++i) {
    source->fill(std::vector{i * 7919 % source->size()}, batch);
    const int64_t at = i * 7919 % source->size() * kSeq;
    for (int64_t t = 0; t < kSeq; ++t) {
      ASSERT_EQ(batch.values<int32_t>(0)[static_cast<size_t>(t)], whole[static_cast<size_t>(at + t)]);
      ASSERT_EQ(batch.values<int32_t>(1)[static_cast<size_t>(t)], whole[static_cast<size_t>(at + t + 1)]);
    }
  }
  EXPECT_LE(source->stages()->memory()->peak(), kBudget);
  EXPECT_EQ(source->describe(0), folder.path("in/00.txt.gz") + " at byte 0");
}

TEST(Text, AFileThatChangesIsNamed) {
  const TestFolder folder;
  folder.write("a", std::string(5000, 'a'));
  folder.write("b", std::string(5000, 'b'));
  const auto source = open_text_files({.seq = 100}, {folder.path()});
  std::filesystem::resize_file(folder.path("b"), 4000);
  Batch batch(source->columns(), 1);
  try {
    source->fill(std::vector<int64_t>{90}, batch);
    FAIL();
  } catch (const UserError& error) {
    EXPECT_TRUE(std::string(error.what()).starts_with(folder.path("b"))) << error.what();
  }
}

TEST(Text, HoldsOutAtLeastOneAndNeverAll) {
  EXPECT_EQ(held_out(100, 0), 0);
  EXPECT_EQ(held_out(100, 0.25), 25);
  EXPECT_EQ(held_out(100, 0.001), 1);
  EXPECT_THROW(held_out(1, 0.1), UserError);
  EXPECT_THROW(held_out(100, 1.0), UserError);
}

}  // namespace
}  // namespace lockstep
