// Sets of records found by a test of their columns: the same for any threads, kept, and without reading row
// groups whose statistics rule every record out.
#include "data/select/kept_set.h"

#include <gtest/gtest.h>

#include <atomic>

#include "base/error.h"
#include "base/test_folder.h"
#include "data/format/parquet/metadata.h"
#include "data/format/parquet_format.h"
#include "data/format/test_blocks.h"

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

Found find(const std::string& text, bool prune = true, int threads = 1) {
  const Filter filter(text);
  std::atomic<int64_t> read = 0;
  const ShardSet shards = set_of(filter, read);
  RecordTest test = filter_test(filter, false);
  if (!prune) test.may_mark = nullptr;
  const int64_t before = read;
  RecordSet set = marked_records(shards, test, threads);
  return {std::move(set), read - before};
}

TEST(KeptSet, RowGroupsThatCannotMatchAreNotRead) {
  const int64_t all = find("at >= 0", false).bytes;
  EXPECT_GT(all, 0);
  EXPECT_EQ(find("at < 0").bytes, 0);
  EXPECT_EQ(find("at > 1e9 or name == 'zoe'").bytes, 0);
  // One of four groups, of which the last is a small rest.
  const Found one = find("at >= 70000 and at < 70010");
  EXPECT_EQ(one.set.size(), 10);
  EXPECT_GT(one.bytes, 0);
  EXPECT_LT(one.bytes, all / 2);
  // The last two groups miss no share.
  EXPECT_EQ(find("share is missing and at > 70000").set.size(), 0);
}

TEST(KeptSet, AreTheSameWithAndWithoutPruning) {
  for (const char* text : {"at < 65536", "at <= 65536", "at == 131072", "at != 5", "not at < 131071",
                           "name == 'bob'", "name > 'bob'", "name in ('ada', 'cyd') and share < 0.05",
                           "share is missing", "share is not missing and at > 60000",
                           "not (share >= 0.5) and at < 70000", "share > 0.985 or at == 199999"}) {
    const Found pruned = find(text), whole = find(text, false, 2);
    EXPECT_EQ(pruned.set.bytes(), whole.set.bytes()) << text;
    EXPECT_LE(pruned.bytes, whole.bytes) << text;
    EXPECT_GT(whole.set.size(), 0) << text;
  }
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

using parquet::bounds_of;
using parquet::Leaf;
using parquet::Physical;
using parquet::Statistics;

std::string plain(auto value) { return {reinterpret_cast<const char*>(&value), sizeof value}; }

TEST(ParquetStatistics, OnlyWhatHoldsForCertainIsABound) {
  Leaf number;
  number.physical = Physical::kInt64;
  const Statistics old{.min = plain(int64_t{-3}), .max = plain(int64_t{9}), .nulls = 0};
  EXPECT_EQ(bounds_of(number, old, false, 10).least, ScalarValue(ExactNumber::of(-3)));
  EXPECT_FALSE(bounds_of(number, old, false, 10).may_miss);
  const Statistics values{.min_value = plain(int64_t{-3}), .max_value = plain(int64_t{9})};
  EXPECT_FALSE(bounds_of(number, values, false, 10).least) << "the order is not known";
  EXPECT_EQ(bounds_of(number, values, true, 10).most, ScalarValue(ExactNumber::of(9)));
  number.max_definition = 1;
  EXPECT_TRUE(bounds_of(number, values, true, 10).may_miss) << "nobody counted what is missing";
  EXPECT_FALSE(bounds_of(number, {.nulls = 10}, true, 10).may_hold);
  number.is_unsigned = true;
  EXPECT_FALSE(bounds_of(number, old, true, 10).least);
  number.is_unsigned = false;
  number.scale = 2;
  EXPECT_FALSE(bounds_of(number, values, true, 10).least) << "a decimal is stored as another number";
}

TEST(ParquetStatistics, TextsHaveNoSignedOrder) {
  Leaf text;
  text.physical = Physical::kByteArray;
  EXPECT_FALSE(bounds_of(text, {.min = "a", .max = "z"}, true, 10).least);
  const Statistics values{.min_value = "a", .max_value = "z", .nulls = 0};
  EXPECT_EQ(bounds_of(text, values, true, 10).most, ScalarValue(std::string("z")));
  EXPECT_TRUE(bounds_of(text, values, true, 10).may_miss) << "NA is a text and missing";
  EXPECT_FALSE(bounds_of(text, {.min_value = "z", .max_value = "a"}, true, 10).least);
}

TEST(ParquetStatistics, FloatsMayBeNaN) {
  Leaf number;
  number.physical = Physical::kDouble;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const ColumnBounds bounds =
      bounds_of(number, {.min_value = plain(nan), .max_value = plain(2.0), .nulls = 0}, true, 10);
  EXPECT_FALSE(bounds.least);
  EXPECT_EQ(bounds.most, ScalarValue(ExactNumber{2.0, {}}));
  EXPECT_TRUE(bounds.may_miss);
  EXPECT_FALSE(bounds_of(number, {.min_value = "123"}, true, 10).least) << "of the wrong size";
}

}  // namespace
}  // namespace lockstep
