// Sets of records found by a test of their columns: the same for any threads, and kept.
#include "data/select/kept_set.h"

#include <gtest/gtest.h>

#include <atomic>

#include "base/error.h"
#include "base/test_folder.h"
#include "data/parquet/parquet_format.h"
#include "data/shards/formats.h"
#include "data/testing/test_blocks.h"

namespace lockstep {
namespace {

// Counts the bytes that are read.
class CountedBytes : public ByteSource {
 public:
  CountedBytes(std::unique_ptr<ByteSource> bytes, std::atomic<int64_t>& count)
      : ByteSource(bytes->name()), bytes_(std::move(bytes)), count_(count) {}

  int64_t size() const override { return bytes_->size(); }
  std::string stamp() const override { return bytes_->stamp(); }
  void read(int64_t offset, std::span<char> out) const override {
    count_ += static_cast<int64_t>(out.size());
    bytes_->read(offset, out);
  }

 private:
  std::unique_ptr<ByteSource> bytes_;
  std::atomic<int64_t>& count_;
};

// Three row groups of 65536 records and a rest; `at` rises through the file, name repeats in each.
std::string rising_file() {
  ColumnBlock block;
  block.reset({{"at", ValueType::kI64, 1}, {"share", ValueType::kF64, 1}, {"name", ValueType::kBytes, 1}});
  std::string file;
  const auto writer = make_table_writer("parquet", block.fields());
  const std::string names[] = {"ada", "bob", "cyd"};
  for (int64_t first = 0; first < 200000; first += 10000) {
    block.reset(block.fields());
    block.records = 10000;
    block.columns[1].missing.resize(10000);
    for (int64_t i = first; i < first + 10000; ++i) {
      block.columns[0].as<int64_t>().push_back(i);
      block.columns[1].as<double>().push_back(static_cast<double>(i % 100) / 100);
      block.columns[1].missing[static_cast<size_t>(i - first)] = i % 17 == 0 && i < 65536;
      block.columns[2].as<std::string_view>().push_back(names[i / 70000]);
    }
    writer->append(block, file);
  }
  writer->finish(file);
  return file;
}

const std::string& file() {
  static const std::string bytes = rising_file();
  return bytes;
}

ShardSet set_of(const Filter& filter, std::atomic<int64_t>& read) {
  std::vector<std::unique_ptr<ByteSource>> shards;
  shards.push_back(std::make_unique<CountedBytes>(open_text("t.parquet", file()), read));
  FormatOptions options;
  options.columns = filter.columns();
  return ShardSet(make_parquet_format(options), std::move(shards), {});
}

struct Found {
  RecordSet set;
  int64_t bytes;
};

Found find(const std::string& text, int threads = 1) {
  const Filter filter(text);
  std::atomic<int64_t> read = 0;
  const ShardSet shards = set_of(filter, read);
  const RecordTest test = filter_test(filter, false);
  const int64_t before = read;
  RecordSet set = marked_records(shards, test, threads);
  return {std::move(set), read - before};
}

TEST(KeptSet, AreTheSameForAnyThreadsAndReadOnlyTheirColumns) {
  int64_t most = 0;
  for (const char* text : {"at < 65536", "not at < 131071", "name in ('ada', 'cyd') and share < 0.05",
                           "share is not missing and at > 60000", "share > 0.985 or at == 199999"}) {
    const Found one = find(text), several = find(text, 3);
    EXPECT_EQ(one.set.bytes(), several.set.bytes()) << text;
    EXPECT_GT(one.set.size(), 0) << text;
    most = std::max(most, one.bytes);
  }
  EXPECT_LT(find("name == 'bob'").bytes, most / 2);
}

TEST(KeptSet, AreFoundAgainWithoutReading) {
  const TestFolder folder;
  const Filter filter("at >= 70000 and share == 0.5");
  std::atomic<int64_t> read = 0;
  const ShardSet shards = set_of(filter, read);
  int opened = 0;
  const OpenColumns open = [&](const std::vector<BlockField>& columns) {
    EXPECT_EQ(columns, filter.columns());
    ++opened;
    return std::make_shared<const ShardSet>(shards);
  };
  std::filesystem::create_directories(folder.path("kept"));
  const KeptSetOptions options{.folder = folder.path("kept"), .index = "i", .threads = 2};
  const RecordTest test = filter_test(filter, false);
  const auto first = kept_set(shards, test, open, options);
  EXPECT_EQ(first->size(), 1300);
  EXPECT_EQ(kept_set(shards, test, open, options)->bytes(), first->bytes());
  EXPECT_EQ(opened, 1);
  // Damage is noticed; another filter or index is another set.
  for (const auto& entry : std::filesystem::directory_iterator(folder.path("kept")))
    if (entry.path().extension() == ".bits") {
      std::string bytes = read_file(entry.path().string());
      bytes.back() ^= 1;
      write_file(entry.path().string(), bytes);
    }
  EXPECT_EQ(kept_set(shards, test, open, options)->bytes(), first->bytes());
  EXPECT_EQ(opened, 2);
  KeptSetOptions other = options;
  other.index = "j";
  kept_set(shards, test, open, other);
  EXPECT_EQ(opened, 3);
}

}  // namespace
}  // namespace lockstep
