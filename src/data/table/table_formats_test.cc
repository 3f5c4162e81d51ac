// The same records give the same model inputs from every format that they can be written in, compressed or
// not.
#include <gtest/gtest.h>
#include <zlib.h>

#include <filesystem>
#include <map>
#include <numeric>

#include "base/error.h"
#include "base/sha256.h"
#include "base/test_folder.h"
#include "data/convert/convert.h"
#include "data/synthetic/fraud_shards.h"
#include "data/synthetic/fraud_writer.h"
#include "data/table/table.h"

namespace lockstep {
namespace {

TableOptions options_of(const std::string& format) {
  TableOptions options;
  options.format = format;
  options.encoding.label = "is_fraud";
  options.encoding.ignore = {"card"};
  options.encoding.buckets = 500;
  return options;
}

// A hash over all batches in the order of the records.
std::string hash_of(const Source& source) {
  constexpr int64_t kBatch = 64;
  std::string bytes;
  for (int64_t first = 0; first < source.size(); first += kBatch) {
    std::vector<int64_t> records(static_cast<size_t>(std::min(kBatch, source.size() - first)));
    std::iota(records.begin(), records.end(), first);
    Batch batch(source.columns(), static_cast<int64_t>(records.size()));
    source.fill(records, batch);
    for (size_t c = 0; c < batch.columns().size(); ++c)
      bytes.append(static_cast<const char*>(batch.data(c)), static_cast<size_t>(batch.bytes(c)));
  }
  return sha256(bytes);
}

class TableFormats : public testing::Test {
 protected:
  // Written and opened in this format.
  Table open(const std::string& format) {
    FraudOptions options;
    options.rows = 5000;
    options.eval_rows = 1000;
    options.shards = 3;
    options.format = format;
    write_fraud(options, folder_.path(format));
    return open_table(options_of(format), {folder_.path(format + "/train-*." + format)});
  }

  TestFolder folder_;
};

TEST_F(TableFormats, GiveTheSameBatches) {
  const Table csv = open("csv");
  ASSERT_EQ(csv.source->size(), 4000);
  const std::string expected = hash_of(*csv.source);
  for (const std::string_view name : fraud_formats()) {
    const std::string format(name);
    if (format == "csv") continue;
    const Table table = open(format);
    EXPECT_EQ(table.encoding->fitted(), csv.encoding->fitted()) << format;
    EXPECT_EQ(hash_of(*table.source), expected) << format;
  }
}

TEST_F(TableFormats, NoticeAFileThatIsCutOrChanged) {
  for (const std::string format : {"jsonl", "tfrecord"}) {
    const Table table = open(format);
    const std::string path = folder_.path(format + "/train-00002-of-00003." + format);
    const auto size = std::filesystem::file_size(path);
    // While a run has it open.
    std::filesystem::resize_file(path, size / 2);
    try {
      hash_of(*table.source);
      FAIL() << format;
    } catch (const UserError& error) {
      EXPECT_TRUE(std::string(error.what()).starts_with(path)) << error.what();
    }
    // At the next start it is another file, which ends in the middle of a record.
    try {
      hash_of(*open_table(options_of(format), {path}).source);
      FAIL() << format;
    } catch (const UserError& error) {
      EXPECT_TRUE(std::string(error.what()).starts_with(path)) << error.what();
    }
  }
}

TEST_F(TableFormats, GiveTheSameBatchesCompressed) {
  const std::string expected = hash_of(*open("jsonl").source);
  std::filesystem::create_directories(folder_.path("packed"));
  for (int shard = 0; shard < 3; ++shard) {
    const std::string name = fmt::format("train-{:05}-of-00003.jsonl", shard);
    const std::string text = read_file(folder_.path("jsonl/" + name));
    const gzFile file = gzopen(folder_.path("packed/" + name + ".gz").c_str(), "wb");
    ASSERT_EQ(gzwrite(file, text.data(), static_cast<unsigned>(text.size())), static_cast<int>(text.size()));
    gzclose(file);
  }
  // A folder, so that the names decide.
  EXPECT_EQ(hash_of(*open_table(options_of("jsonl"), {folder_.path("packed")}).source), expected);
}

// Whole numbers, truth values and doubles of JSONL, as numbers and as categories.
TEST_F(TableFormats, GiveTheSameBatchesOfConvertedFiles) {
  std::string text;
  for (int i = 0; i < 500; ++i)
    text += fmt::format("{{\"k\":{},\"b\":{},\"x\":{},\"id\":{},\"y\":{}}}\n", i % 50, i % 3 == 0, i / 7.0,
                        18446744073709550000ULL + static_cast<uint64_t>(i % 9), i % 2);
  folder_.write("in/t.jsonl", text);
  TableOptions options;
  options.encoding.label = "y";
  options.encoding.numeric = {"x"};
  options.encoding.categorical = {"k", "b", "id"};
  options.split = TableSplit{"k", 0.3, 1};
  options.format = "jsonl";
  const Table original = open_table(options, {folder_.path("in")});
  for (const std::string format : {"csv", "jsonl", "tfrecord", "parquet", "block"}) {
    ConvertOptions convert;
    convert.files = {folder_.path("in/t.jsonl")};
    convert.to = options.format = format;
    convert.folder = folder_.path("as-" + format);
    convert_files(convert);
    const Table table = open_table(options, {folder_.path("as-" + format)});
    EXPECT_EQ(hash_of(*table.source), hash_of(*original.source)) << format;
    EXPECT_EQ(hash_of(*table.held_out), hash_of(*original.held_out)) << format;
  }
}

// Floats as categories: whole ones, such as a column of codes with missing values becomes in data frames, are
// what CSV and JSONL write for them.
TEST_F(TableFormats, GiveTheSameCategoriesOfFloats) {
  constexpr const char* kRates[] = {"0.0", "0.25", "0.5", "0.75", "1.0", "1.25", "0.1"};
  std::string text;
  for (int i = 0; i < 300; ++i)
    text += fmt::format("{{\"code\":{}.0,\"rate\":{},\"large\":{},\"x\":{},\"y\":{}}}\n", i % 40,
                        kRates[i % 7], i % 2 == 0 ? "1e+16" : "-3.0", i, i % 2);
  text.replace(text.find("\"code\":3.0"), 10, "\"code\":null");
  folder_.write("in/t.jsonl", text);
  TableOptions options;
  options.encoding.label = "y";
  options.encoding.numeric = {"x"};
  options.encoding.categorical = {"code", "rate", "large"};
  options.split = TableSplit{"code", 0.3, 1};
  options.transforms = {{"hash", {{"columns", {"code"}}, {"as", {"hashed"}}, {"buckets", {"50"}}}}};
  options.encoding.categorical.emplace_back("hashed");
  options.format = "jsonl";
  const Table original = open_table(options, {folder_.path("in")});
  std::map<std::string, std::string> trained{{hash_of(*original.source), "as it was "}};
  std::map<std::string, std::string> held_out{{hash_of(*original.held_out), "as it was "}};
  for (const std::string format : {"csv", "jsonl", "tfrecord", "parquet", "block"}) {
    ConvertOptions convert;
    convert.files = {folder_.path("in/t.jsonl")};
    convert.to = options.format = format;
    convert.folder = folder_.path("as-" + format);
    convert_files(convert);
    const Table table = open_table(options, {folder_.path("as-" + format)});
    trained[hash_of(*table.source)] += format + " ";
    held_out[hash_of(*table.held_out)] += format + " ";
  }
  EXPECT_EQ(trained.size(), 1u) << trained.begin()->second;
  EXPECT_EQ(held_out.size(), 1u) << held_out.begin()->second;
}

// In files whose records name their values themselves, such a column would only be missing everywhere.
TEST_F(TableFormats, RefuseAColumnThatNoFileHas) {
  for (const std::string format : {"csv", "jsonl", "tfrecord", "parquet", "block"}) {
    open(format);
    TableOptions options = options_of(format);
    options.filter = "amountt > 3";
    try {
      open_table(options, {folder_.path(format + "/train-*." + format)});
      ADD_FAILURE() << format;
    } catch (const UserError& error) {
      EXPECT_NE(std::string(error.what()).find("there is no column 'amountt'"), std::string::npos)
          << error.what();
      EXPECT_NE(std::string(error.what()).find("did you mean amount?"), std::string::npos) << error.what();
    }
  }
}

TEST_F(TableFormats, AColumnMayBeInSomeFilesOnly) {
  folder_.write("some/a.jsonl", "{\"x\":1,\"y\":0}\n{\"x\":2,\"y\":1}\n");
  folder_.write("some/b.jsonl", "{\"x\":3,\"y\":0}\n{\"x\":4,\"y\":1,\"late\":true}\n");
  TableOptions options;
  options.format = "jsonl";
  options.encoding.label = "y";
  options.filter = "late is missing";
  EXPECT_EQ(open_table(options, {folder_.path("some")}).source->size(), 3);
}

TEST_F(TableFormats, AFileOfBadRecordsOnlyIsLeftOut) {
  const std::vector<std::pair<std::string, std::string>> kinds = {
      {"csv", "x,y\n"}, {"jsonl", ""}};  // and the lines before the records
  for (const auto& [format, head] : kinds) {
    std::string good = head;
    for (int i = 0; i < 9; ++i)
      good += format == "csv" ? fmt::format("{},{}\n", i, i % 2)
                              : fmt::format("{{\"x\":{},\"y\":{}}}\n", i, i % 2);
    folder_.write(format + "/a." + format, good);
    folder_.write(format + "/b." + format, head + "what is this\n");
    folder_.write(format + "/c." + format, good);
    TableOptions options;
    options.format = format;
    options.encoding.label = "y";
    options.bad = BadRecords::kSkip;
    options.most_bad = 0.1;
    for (int again = 0; again < 2; ++again) {  // the second time with the indexes that are there
      const Table table = open_table(options, {folder_.path(format)});
      EXPECT_EQ(table.source->size(), 18);
      EXPECT_EQ(table.source->shards().bad_count(), 1);
      hash_of(*table.source);
    }
    options.most_bad = 0.01;
    EXPECT_THROW(open_table(options, {folder_.path(format)}), UserError);
    options.most_bad = 1;
    EXPECT_THROW(open_table(options, {folder_.path(format + "/b." + format)}), UserError);
  }
}

}  // namespace
}  // namespace lockstep
