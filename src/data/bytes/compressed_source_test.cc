// Compressed files: any range of their content equals the same range of the content, however they were
// compressed; damage is named by file and byte.
#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "base/error.h"
#include "base/test_folder.h"
#include "data/bytes/access_points.h"
#include "data/bytes/byte_source.h"
#include "data/testing/test_compression.h"

namespace lockstep {
namespace {

// Text that compresses about as well as a table does.
std::string table(int64_t records) {
  std::string text;
  for (int64_t i = 0; i < records; ++i)
    text += fmt::format("{},{},k{:05}\n", i, i * 7919 % 100003, i * i % 90001);
  return text;
}

std::string in_pieces(const std::string& text, size_t piece, std::string (*compress)(const std::string&)) {
  std::string out;
  for (size_t at = 0; at < text.size(); at += piece) out += compress(text.substr(at, piece));
  return out;
}

void expect_ranges(const ByteSource& source, const std::string& text) {
  ASSERT_EQ(source.size(), static_cast<int64_t>(text.size()));
  std::string found;
  for (uint64_t i = 0; i < 20; ++i) {
    const size_t offset = (i * 2654435761U) % text.size();
    found.resize(std::min<size_t>(text.size() - offset, i * i * 337 + 1));
    source.read(static_cast<int64_t>(offset), found);
    ASSERT_EQ(found, text.substr(offset, found.size())) << offset;
  }
  found.resize(text.size());
  source.read(0, found);
  EXPECT_EQ(found, text);
}

TEST(CompressedSource, GivesTheContentAtAnyOffset) {
  const std::string text = table(120000);
  for (const std::string& file :
       {gzipped(text), in_pieces(text, 700000, gzipped), in_pieces(text, 60000, gzipped), zstd_frame(text),
        in_pieces(text, 300000, zstd_frame), gzipped(text) + std::string(5, '\0')}) {
    const auto source = decompressed(open_text("t", file));
    expect_ranges(*source, text);
    EXPECT_TRUE(source->stamp().ends_with(" text"));
  }
}

TEST(CompressedSource, FilesThatAreNotCompressedAreLeftAlone) {
  for (const std::string text : {"", "a", "x,y\n1,2\n", "\x1f\x8b"}) {
    const auto source = decompressed(open_text("t", text));
    EXPECT_EQ(source->size(), static_cast<int64_t>(text.size()));
  }
}

TEST(CompressedSource, PointsAreKeptBesideTheFileAndReachItsMiddle) {
  const TestFolder folder;
  const std::string text = table(200000);
  folder.write("t.csv.gz", gzipped(text));
  const auto file = open_file(folder.path("t.csv.gz"));
  const AccessPoints points = access_points(*file, Compression::kGzip, "");
  EXPECT_GT(points.points.size(), 2u);
  EXPECT_EQ(points.size, static_cast<int64_t>(text.size()));
  const std::string kept = folder.path(".lockstep-index/t.csv.gz.points");
  ASSERT_TRUE(std::filesystem::exists(kept));
  EXPECT_LT(std::filesystem::file_size(kept), static_cast<uintmax_t>(file->size() / 10));
  const auto before = std::filesystem::last_write_time(kept);
  expect_ranges(*open_shard(folder.path("t.csv.gz")), text);
  EXPECT_EQ(std::filesystem::last_write_time(kept), before);

  // Damaged points are found again; a changed file gets others.
  folder.write(".lockstep-index/t.csv.gz.points", "broken");
  expect_ranges(*open_shard(folder.path("t.csv.gz")), text);
  folder.write("t.csv.gz", gzipped(text + "more"));
  expect_ranges(*open_shard(folder.path("t.csv.gz")), text + "more");
}

TEST(CompressedSource, ManyThreadsMayRead) {
  const std::string text = table(100000);
  const auto source = decompressed(open_text("t", gzipped(text)));
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back([&] { expect_ranges(*source, text); });
}

std::string error_of(const std::string& file) {
  try {
    decompressed(open_text("t.gz", file));
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(CompressedSource, DamageIsNamedByFileAndByte) {
  const std::string text = table(3000);
  for (const std::string& file : {gzipped(text), zstd_frame(text)}) {
    std::string wrong = file;
    wrong[file.size() / 2] ^= 0x55;
    const std::string error = error_of(wrong);
    EXPECT_TRUE(error.starts_with("t.gz at byte ")) << error;
    EXPECT_TRUE(error.find("damaged") != std::string::npos || error.find("middle") != std::string::npos)
        << error;
    EXPECT_EQ(error_of(file.substr(0, file.size() - 3)).substr(0, 70),
              fmt::format("t.gz at byte {}: the file ends in the middle of its ", file.size() - 3)
                  .append(file == gzipped(text) ? "gzip data; it was cut" : "zstd data; it was cut")
                  .substr(0, 70));
  }
  std::string wrong_crc = gzipped(text);
  wrong_crc[wrong_crc.size() - 6] ^= 1;
  EXPECT_TRUE(error_of(wrong_crc).find("incorrect data check") != std::string::npos) << error_of(wrong_crc);
}

TEST(CompressedSource, AFileThatChangesIsNoticed) {
  const TestFolder folder;
  folder.write("t.gz", gzipped(table(50000)));
  const auto source = open_shard(folder.path("t.gz"));
  std::filesystem::resize_file(folder.path("t.gz"), 1000);
  std::string found(100, '\0');
  EXPECT_THROW(source->read(source->size() - 100, found), UserError);
}

}  // namespace
}  // namespace lockstep
