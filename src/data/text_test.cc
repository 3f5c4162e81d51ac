// TextSource: windows, the shift by one, and holding records out.
#include "data/text.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/test_folder.h"
#include "data/slice.h"

namespace lockstep {
namespace {

TEST(Text, WindowsAreShiftedByOne) {
  const TestFolder folder;
  folder.write("b.txt", "6789");
  folder.write("a/x.txt", "012345");
  const TextSource source({folder.path()}, 3);
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
  const auto source = std::make_shared<TextSource>(std::vector<std::string>{folder.path("x")}, 3);
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
  const TextSource source({folder.path("x")}, 2);
  Batch batch(source.columns(), 1);
  source.fill(std::vector<int64_t>{0}, batch);
  EXPECT_EQ(batch.values<int32_t>(0)[0], 255);
  EXPECT_EQ(batch.values<int32_t>(1)[1], 128);
}

TEST(Text, RefusesTooLittleAndTooMuch) {
  const TestFolder folder;
  folder.write("x", "0123456789");
  folder.write("y", "0");
  EXPECT_THROW(TextSource({folder.path("x")}, 3, 9), UserError);
  EXPECT_THROW(TextSource({folder.path()}, 3, 10), UserError);
  EXPECT_THROW(TextSource({folder.path("x")}, 10), UserError);
  EXPECT_EQ(TextSource({folder.path("x")}, 9).size(), 1);
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
