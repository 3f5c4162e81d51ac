// Rows of Parquet pages that are read where they lie in a mapped file (pages without a crc, as others write
// them): the same as those that are read, and a file that changes meanwhile is named.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/test_folder.h"
#include "data/format/test_rows.h"

namespace lockstep {
namespace {

constexpr int64_t kRows = 300;

// Counts how often something is mapped.
class Counted : public ByteSource {
 public:
  Counted(const std::string& path, int64_t& maps) : ByteSource(path), file_(open_file(path)), maps_(maps) {}
  int64_t size() const override { return file_->size(); }
  void read(int64_t offset, std::span<char> out) const override { file_->read(offset, out); }
  Mapped mapped(int64_t offset, int64_t bytes) const override {
    ++maps_;
    return file_->mapped(offset, bytes);
  }
  void check_unchanged(int64_t offset) const override { file_->check_unchanged(offset); }
  std::string stamp() const override { return file_->stamp(); }

 private:
  std::unique_ptr<ByteSource> file_;
  int64_t& maps_;
};

class MappedPages : public testing::Test {
 protected:
  MappedPages() { std::filesystem::copy_file(LOCKSTEP_GOLDEN "/parquet/dictionary.parquet", path_); }

  std::unique_ptr<ShardSet> open(std::optional<int64_t> most_mapped) {
    std::vector<std::unique_ptr<ByteSource>> files;
    files.push_back(std::make_unique<Counted>(path_, maps_));
    return std::make_unique<ShardSet>(
        make_format("parquet", {}), std::move(files),
        ShardSetOptions{.index_folder = folder_.path("index"), .most_mapped = most_mapped});
  }

  std::string rows_of(const ShardSet& set, int64_t first, int64_t count) {
    // What is known of pages is kept for the encoding.
    if (!encoding_) encoding_.emplace(set.fields());
    const HashedRows& encoding = *encoding_;
    StageCounters counters;
    std::string rows(static_cast<size_t>(count) * encoding.place_columns().size() * kPlaceBytes, '\0');
    EXPECT_TRUE(
        set.load_rows(encoding, first, count, {}, reinterpret_cast<std::byte*>(rows.data()), counters));
    return rows;
  }

  TestFolder folder_;
  std::string path_ = folder_.path("x.parquet");
  int64_t maps_ = 0;
  std::optional<HashedRows> encoding_;
};

TEST_F(MappedPages, HoldTheSameRows) {
  const auto read = open(0);
  const auto mapped = open({});
  for (int round = 0; round < 2; ++round)  // how a page lies in the file is known the second time
    for (const auto& [first, count] : {std::pair<int64_t, int64_t>{0, kRows}, {100, 150}, {kRows - 9, 9}}) {
      const int64_t before = maps_;
      const std::string expected = rows_of(*read, first, count);
      const int64_t between = maps_;
      EXPECT_EQ(rows_of(*mapped, first, count), expected);
      // Where the entries of a dictionary lie is seen in the mapped file in any case.
      if (round > 0) {
        EXPECT_GT(maps_ - between, between - before);
      }
    }
}

TEST_F(MappedPages, OfAFileThatWasCutAreNamed) {
  const auto set = open({});
  const std::string before = rows_of(*set, 0, kRows);
  ASSERT_EQ(rows_of(*set, 0, kRows), before);
  std::filesystem::resize_file(path_, 4096);
  try {
    rows_of(*set, 0, kRows);
    FAIL() << "rows of a file that was cut";
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find(path_), std::string::npos) << error.what();
  }
}

// Wherever it was written to: before what was read is found to be damaged.
TEST_F(MappedPages, OfAFileThatWasWrittenToAreNamed) {
  for (int64_t at = 600; at < 20000; at += 700) {
    std::filesystem::copy_file(LOCKSTEP_GOLDEN "/parquet/dictionary.parquet", path_,
                               std::filesystem::copy_options::overwrite_existing);
    const auto set = open({});
    rows_of(*set, 0, kRows);
    std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(at).write("\xff\xff\xff\xff", 4);
    file.close();
    // Clocks of files may stand still for some milliseconds.
    std::filesystem::last_write_time(path_,
                                     std::filesystem::last_write_time(path_) + std::chrono::seconds(1));
    try {
      rows_of(*set, 0, kRows);
      FAIL() << "rows of a file that was written to at byte " << at;
    } catch (const UserError& error) {
      EXPECT_NE(std::string(error.what()).find("has changed"), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace lockstep
