// Tables read by constants that were kept: as they were read when these were fitted, whatever the new files
// hold.
#include "data/table/kept_table.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/test_folder.h"
#include "data/reading/record_reader.h"
#include "data/shards/formats.h"
#include "data/testing/test_columns.h"

namespace lockstep {
namespace {

std::string table_text(int64_t first, int64_t records) {
  std::string text = "id,amount,kind,y\n";
  for (int64_t i = first; i < first + records; ++i)
    text += fmt::format("r{},{},{},{}\n", i, i % 13 == 0 ? "" : fmt::format("{}.5", i * 7919 % 1000),
                        i % 9 == 0 ? "label y" : fmt::format("k{}", i * i % 53), i % 3 == 0 ? 1 : 0);
  return text;
}

TableOptions options_with_transforms() {
  TableOptions options;
  options.encoding.label = "y";
  options.encoding.ignore = {"id"};
  options.encoding.buckets = 100;
  options.transforms = {
      {"bucketise", {{"columns", {"amount"}}, {"as", {"amount_bucket"}}, {"quantiles", {"8"}}}},
      {"vocabulary", {{"columns", {"kind"}}, {"size", {"40"}}}},
      {"fill", {{"columns", {"amount"}}, {"method", {"median"}}}},
      {"log", {{"columns", {"amount"}}}},
  };
  options.budget = int64_t{1} << 26;
  return options;
}

std::string rows_of(const Source& source, int64_t records) {
  Batch batch(source.columns(), records);
  std::vector<int64_t> all(static_cast<size_t>(records));
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int64_t>(i);
  source.fill(all, batch);
  std::string bytes;
  for (size_t c = 0; c < batch.columns().size(); ++c)
    bytes.append(static_cast<const char*>(batch.data(c)), static_cast<size_t>(batch.bytes(c)));
  return bytes;
}

class KeptTable : public testing::Test {
 protected:
  KeptTable() {
    folder_.write("train.csv", table_text(0, 2000));
    folder_.write("new.csv", table_text(7000, 300));
  }
  std::vector<std::string> file(const std::string& name) const { return {folder_.path(name)}; }

  TestFolder folder_;
};

TEST_F(KeptTable, ReadsNewFilesAsTheFittedTableDoes) {
  for (const bool transforms : {false, true}) {
    TableOptions options = options_with_transforms();
    if (!transforms) options.transforms.clear();
    const Table fitted = open_table(options, file("train.csv"));
    const Table kept = restore_table(options, fitted.constants(), file("new.csv"));
    EXPECT_EQ(kept.constants(), fitted.constants());
    EXPECT_EQ(rows_of(*open_table(options, kept, file("new.csv")).source, 300),
              rows_of(*open_table(options, fitted, file("new.csv")).source, 300));
  }
}

TEST_F(KeptTable, WithoutALabelTheInputsAreTheSame) {
  const TableOptions options = options_with_transforms();
  const Table fitted = open_table(options, file("train.csv"));
  std::string unlabelled = "id,amount,kind\n", text = table_text(7000, 300);
  for (size_t line = text.find('\n') + 1; line < text.size(); line = text.find('\n', line) + 1)
    unlabelled += text.substr(line, text.rfind(',', text.find('\n', line)) - line) + "\n";
  folder_.write("unlabelled.csv", unlabelled);
  const auto read = [&](const std::string& name) {
    const Table kept = restore_table(options, fitted.constants(), file(name));
    Transforms chain = without_label(kept, "y");
    const auto set = [&](const std::vector<BlockField>& columns) {
      return std::make_shared<ShardSet>(make_format("csv", {columns}), file(name), ShardSetOptions{});
    };
    const auto shards = set(columns_to_decode(chain));
    const auto reader = make_record_reader(shards, chain, kept.columns, set({{"id", ValueType::kBytes, 1}}),
                                           {}, int64_t{1} << 20);
    RecordScratch scratch;
    reader->read(20, 100, scratch);
    EXPECT_EQ(scratch.own.columns.at(0).as<std::string_view>().at(0), "r7020");
    std::string bytes;
    for (size_t c = 0; c < reader->columns().size(); ++c) {
      const Column& column = reader->columns()[c];
      bytes.append(static_cast<const char*>(scratch.inputs[c]),
                   static_cast<size_t>(100 * column.shape.numel() * size_of(column.dtype)));
    }
    return bytes;
  };
  EXPECT_EQ(read("unlabelled.csv"), read("new.csv"));
}

TEST_F(KeptTable, RefusesOtherColumnsAndOtherConstants) {
  const TableOptions options = options_with_transforms();
  const std::string constants = open_table(options, file("train.csv")).constants();
  folder_.write("other.csv", "id,kind,y\n1,k1,0\n");
  EXPECT_NE(problem_with([&] { restore_table(options, constants, file("other.csv")); }).find("'amount'"),
            std::string::npos);
  TableOptions fewer = options;
  fewer.transforms.pop_back();
  EXPECT_NE(problem_with([&] { restore_table(fewer, constants, file("new.csv")); }), "");
  EXPECT_NE(problem_with([&] { restore_table(options, "label y\n", file("new.csv")); }), "");
}

}  // namespace
}  // namespace lockstep
