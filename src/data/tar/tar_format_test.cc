// Tar archives: names in all their forms, records by common name, and what damage does to the rest.
#include <gtest/gtest.h>

#include "base/error.h"
#include "data/images/image_shard.h"
#include "data/shards/shard_set.h"
#include "data/tar/tar_members.h"
#include "data/testing/test_images.h"

namespace lockstep {
namespace {

std::vector<std::pair<std::string, int64_t>> members_of(const std::string& archive) {
  const auto bytes = open_text("t.tar", archive);
  TarMembers members(*bytes);
  std::vector<std::pair<std::string, int64_t>> found;
  while (const auto member = members.next()) found.emplace_back(member->name, member->bytes);
  return found;
}

ShardSet set_of(const std::string& archive, BadRecords bad = BadRecords::kStop, double most_bad = 0) {
  std::vector<std::unique_ptr<ByteSource>> shards;
  shards.push_back(open_text("t.tar", archive));
  return ShardSet(make_tar_format({{}, {}, bad}), std::move(shards), {.most_bad = most_bad});
}

std::string error_of(const std::string& archive) {
  try {
    set_of(archive);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

std::string jpeg_of(int kind) { return to_jpeg(striped_image(16, 16, kind, kind)); }

TEST(TarMembers, NamesHaveManyForms) {
  const std::string long_name(300, 'n');
  const std::string path = "21 path=a/" + std::string(10, 'p') + "\n";
  ASSERT_EQ(path.size(), 21u);
  const std::string archive = tar_member("a.jpg", "12345") + tar_member("b.jpg", "", '0', "deep/er") +
                              tar_member("folder/", "", '5') +
                              tar_member("././@LongLink", long_name + '\0', 'L') +
                              tar_member(long_name, "x") + tar_member("pax", path, 'x') +
                              tar_member("short", "xy") + tar_member("last", "") + tar_end();
  EXPECT_EQ(members_of(archive),
            (std::vector<std::pair<std::string, int64_t>>{
                {"a.jpg", 5}, {"deep/er/b.jpg", 0}, {long_name, 1}, {"a/pppppppppp", 2}, {"last", 0}}));
}

TEST(TarMembers, SizesMayBeBinary) {
  std::string member = tar_member("a", "123");
  member.replace(124, 12, std::string("\x80\0\0\0\0\0\0\0\0\0\0\3", 12));
  unsigned sum = 0;
  for (size_t i = 0; i < 512; ++i) sum += i >= 148 && i < 156 ? ' ' : static_cast<unsigned char>(member[i]);
  char digits[8];
  std::snprintf(digits, sizeof digits, "%06o", sum);
  member.replace(148, 6, digits);
  EXPECT_EQ(members_of(member + tar_end()), (std::vector<std::pair<std::string, int64_t>>{{"a", 3}}));
}

TEST(TarFormat, RecordsHaveOneNameUpToTheFirstDot) {
  const std::string archive = tar_member("d.x/000.jpg", jpeg_of(0)) + tar_member("d.x/000.cls", "7\n") +
                              tar_member("d.x/000.txt", "passed over") + tar_member("d.x/001.cls", "12") +
                              tar_member("d.x/001.png", to_png(striped_image(8, 8, 1, 1))) +
                              tar_member("002.seg.png", "not the image") + tar_member("002.JPG", jpeg_of(2)) +
                              tar_member("002.json", R"({"label": "cat"})") + tar_end();
  const ShardSet set = set_of(archive);
  EXPECT_EQ(set.manifest().records(), 3);
  EXPECT_EQ(classes_in(set.index(0)), (std::vector<std::string>{"7", "12", "cat"}));
  BlockScratch scratch;
  StageCounters counters;
  set.load(1, 2, scratch, counters);
  EXPECT_EQ(scratch.block.column("class").as<std::string_view>(),
            (std::vector<std::string_view>{"12", "cat"}));
  EXPECT_EQ(scratch.block.column("image").as<std::string_view>()[1], jpeg_of(2));
}

TEST(TarFormat, RecordsThatAreNotWholeStopOrAreLeftOut) {
  const std::string good = tar_member("a.jpg", jpeg_of(0)) + tar_member("a.cls", "1");
  const std::string last = tar_member("z.jpg", jpeg_of(1)) + tar_member("z.cls", "0") + tar_end();
  const std::string broken = jpeg_of(1).substr(0, 400);
  for (const auto& [middle, problem] : std::vector<std::pair<std::string, std::string>>{
           {tar_member("b.jpg", jpeg_of(0)), "record 'b' has no class"},
           {tar_member("b.cls", "1"), "record 'b' has 0 images, not one"},
           {tar_member("b.jpg", jpeg_of(0)) + tar_member("b.png", "") + tar_member("b.cls", "1"),
            "record 'b' has 2 images, not one"},
           {tar_member("b.jpg", jpeg_of(0)) + tar_member("b.json", "{"), "record 'b' has no class"},
           {tar_member("b.jpg", broken) + tar_member("b.cls", "1"), "cannot decode the image"}}) {
    const bool decodes = problem == "cannot decode the image";
    if (!decodes) {
      EXPECT_NE(
          error_of(good + middle + last).find(fmt::format("t.tar at byte {}: {}", good.size(), problem)),
          std::string::npos)
          << error_of(good + middle + last);
    }
    const ShardSet set = set_of(good + middle + last, BadRecords::kSkip, 0.5);
    EXPECT_EQ(set.manifest().records(), 2);
    ASSERT_EQ(set.bad_records().size(), 1u);
    EXPECT_NE(set.bad_records()[0].find(problem), std::string::npos) << set.bad_records()[0];
    EXPECT_EQ(classes_in(set.index(0)), (std::vector<std::string>{"1", "0"}));
    EXPECT_THROW(set_of(good + middle + last, BadRecords::kSkip, 0.1), UserError);
  }
}

TEST(TarFormat, AnArchiveThatIsCutIsRefused) {
  const std::string archive = tar_member("a.jpg", jpeg_of(0)) + tar_member("a.cls", "1") +
                              tar_member("b.jpg", jpeg_of(1)) + tar_member("b.cls", "0") + tar_end();
  for (size_t cut = 0; cut + 1024 < archive.size(); cut += 97)
    EXPECT_NE(error_of(archive.substr(0, cut)).find("t.tar at byte"), std::string::npos) << cut;
  std::string damaged = archive;
  damaged[archive.size() - 1024 - 1024 + 5] ^= 1;  // in the header of b.cls
  EXPECT_NE(error_of(damaged).find("its sum is wrong"), std::string::npos);
  // What came before the damage can be used.
  const ShardSet set = set_of(damaged, BadRecords::kSkip, 0.5);
  EXPECT_EQ(set.manifest().records(), 1);
  EXPECT_NE(set.bad_records()[0].find("its sum is wrong"), std::string::npos);
}

}  // namespace
}  // namespace lockstep
