// Rows of Parquet pages that are read where they lie in a mapped file: the same as those that are read, and a
// file that is cut meanwhile is named.
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <random>

#include "base/error.h"
#include "base/test_folder.h"
#include "data/format/table_writer.h"
#include "data/format/test_rows.h"

namespace lockstep {
namespace {

constexpr int64_t kRows = 3 * 8192;

// Counts what is read and what is mapped.
class Counted : public ByteSource {
 public:
  struct Calls {
    std::atomic<int64_t> read = 0, mapped = 0;
  };

  Counted(const std::string& path, Calls& calls) : ByteSource(path), file_(open_file(path)), calls_(calls) {}
  int64_t size() const override { return file_->size(); }
  void read(int64_t offset, std::span<char> out) const override {
    ++calls_.read;
    file_->read(offset, out);
  }
  Mapped mapped(int64_t offset, int64_t bytes) const override {
    ++calls_.mapped;
    return file_->mapped(offset, bytes);
  }
  void check_unchanged(int64_t offset) const override { file_->check_unchanged(offset); }
  std::string stamp() const override { return file_->stamp(); }

 private:
  std::unique_ptr<ByteSource> file_;
  Calls& calls_;
};

class MappedPages : public testing::Test {
 protected:
  // Numbers that repeat, so that pages have places in a dictionary, and numbers that do not.
  MappedPages() {
    ColumnBlock block;
    block.records = kRows;
    std::minstd_rand draw(3);
    for (const uint32_t values : {7u, 300u, 20000u, 1u << 30}) {
      BlockColumn column = make_column({fmt::format("x{}", values), ValueType::kI64, 1});
      for (int64_t r = 0; r < kRows; ++r)
        column.as<int64_t>().push_back(static_cast<int64_t>(draw() % values));
      block.columns.push_back(std::move(column));
    }
    const auto writer = make_table_writer("parquet", block.fields());
    std::string bytes;
    writer->append(block, bytes);
    writer->finish(bytes);
    std::ofstream(path_, std::ios::binary) << bytes;
  }

  std::unique_ptr<ShardSet> open(std::optional<int64_t> most_mapped) {
    std::vector<std::unique_ptr<ByteSource>> files;
    files.push_back(std::make_unique<Counted>(path_, calls_));
    return std::make_unique<ShardSet>(
        make_format("parquet", {}), std::move(files),
        ShardSetOptions{.index_folder = folder_.path("index"), .most_mapped = most_mapped});
  }

  static std::string rows_of(const ShardSet& set, int64_t first, int64_t count) {
    const HashedRows encoding(set.fields());
    StageCounters counters;
    std::string rows(static_cast<size_t>(count) * encoding.place_columns().size() * kPlaceBytes, '\0');
    EXPECT_TRUE(
        set.load_rows(encoding, first, count, {}, reinterpret_cast<std::byte*>(rows.data()), counters));
    return rows;
  }

  TestFolder folder_;
  std::string path_ = folder_.path("x.parquet");
  Counted::Calls calls_;
};

TEST_F(MappedPages, HoldTheSameRows) {
  const auto read = open(0);
  const auto mapped = open({});
  for (int round = 0; round < 2; ++round)  // how a page lies in the file is known the second time
    for (const auto& [first, count] : {std::pair<int64_t, int64_t>{0, kRows}, {100, 8192}, {kRows - 9, 9}}) {
      const int64_t before = calls_.mapped;
      const std::string expected = rows_of(*read, first, count);
      const int64_t between = calls_.mapped;
      EXPECT_EQ(rows_of(*mapped, first, count), expected);
      // Where the entries of a dictionary lie is seen in the mapped file in any case.
      if (round > 0) {
        EXPECT_GT(calls_.mapped - between, between - before);
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

TEST_F(MappedPages, OfAFileThatWasWrittenToAreNamed) {
  const auto set = open({});
  rows_of(*set, 0, kRows);
  std::fstream(path_, std::ios::in | std::ios::out | std::ios::binary).seekp(600).put('x');
  EXPECT_THROW(rows_of(*set, 0, kRows), UserError);
}

}  // namespace
}  // namespace lockstep
