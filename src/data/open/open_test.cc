// open_data: both parts of every format, with columns that agree and records that do not overlap.
#include "data/open/open.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/error.h"
#include "base/test_folder.h"
#include "data/synthetic/fraud_writer.h"
#include "data/table/table.h"

namespace lockstep {
namespace {

DataOptions generated(DataOptions::Format format) {
  DataOptions options;
  options.format = format;
  options.train.samples = 900;
  options.eval.samples = 100;
  options.seq = 16;
  options.vocab = 40;
  options.classes = 3;
  options.image = 8;
  return options;
}

TEST(OpenData, GeneratedFormatsHaveBothParts) {
  for (const DataOptions::Format format :
       {DataOptions::Format::kFraud, DataOptions::Format::kPatternTokens, DataOptions::Format::kPatternText,
        DataOptions::Format::kPatternImages}) {
    const Data data = open_data(generated(format));
    EXPECT_EQ(data.train->size(), 900);
    ASSERT_NE(data.eval, nullptr);
    EXPECT_EQ(data.eval->size(), 100);
    EXPECT_NE(data.train->fingerprint(), data.eval->fingerprint());
    ASSERT_EQ(data.train->columns().size(), data.eval->columns().size());
    for (size_t i = 0; i < data.train->columns().size(); ++i)
      EXPECT_EQ(data.train->columns()[i].shape, data.eval->columns()[i].shape);
  }
}

TEST(OpenData, HoldsOutTheLastRecords) {
  for (const DataOptions::Format format :
       {DataOptions::Format::kFraud, DataOptions::Format::kPatternTokens, DataOptions::Format::kPatternText,
        DataOptions::Format::kPatternImages}) {
    DataOptions options = generated(format);
    options.eval.samples = 0;
    options.hold_out = 0.1;
    const Data data = open_data(options);
    EXPECT_EQ(data.train->size(), 810);
    EXPECT_EQ(data.eval->size(), 90);
  }
}

// The first transactions of a longer history, as a table whose roles are found by looking at them.
Table looked_at(uint64_t seed, int64_t history, int64_t rows) {
  fraud::Generator generator(seed, history);
  const auto writer = make_fraud_writer("csv");
  std::string text;
  writer->begin(text);
  FraudRow row;
  for (int64_t i = 0; i < rows; ++i) {
    row.set(generator.world(), generator.next());
    writer->add(row, text);
  }
  TableOptions options;
  options.encoding.label = "is_fraud";
  options.encoding.ignore = {"card"};
  return open_table(options, [&] {
    Shards shards;
    shards.push_back(open_text("train-00000-of-00001.csv", std::make_shared<const std::string>(text)));
    return shards;
  });
}

TEST(OpenData, GeneratedTransactionsHaveTheRolesThatALookFinds) {
  for (const uint64_t seed : {1u, 7u, 30u}) {
    DataOptions options;
    options.format = DataOptions::Format::kFraud;
    options.seed = seed;
    options.train.samples = 10000;
    options.eval.samples = 1000;
    const Data data = open_data(options);
    const Table fewest = looked_at(seed, 11000, 10000);
    EXPECT_EQ(data.encoding, fewest.constants());
    EXPECT_EQ(data.train->fingerprint(), fewest.source->fingerprint());
    const Table most = looked_at(seed, 2000000, 10000);
    EXPECT_EQ(most.encoding->encoding().categorical, fewest.encoding->encoding().categorical);
    EXPECT_EQ(most.columns.size(), fewest.columns.size());
  }
}

TEST(OpenData, WhoDoesNotEvaluateTrainsOnTheSameTransactions) {
  DataOptions options = generated(DataOptions::Format::kFraud);
  const Data whole = open_data(options);
  options.evaluates = false;
  const Data train = open_data(options);
  EXPECT_EQ(train.eval, nullptr);
  EXPECT_EQ(train.train->fingerprint(), whole.train->fingerprint());
  EXPECT_EQ(train.encoding, whole.encoding);
  options.eval.samples = 0;
  options.hold_out = 0.1;
  EXPECT_EQ(open_data(options).train->size(), 810);
}

TEST(OpenData, WithoutEvalThereIsNone) {
  DataOptions options = generated(DataOptions::Format::kPatternText);
  options.eval.samples = 0;
  EXPECT_EQ(open_data(options).eval, nullptr);
  options.format = DataOptions::Format::kFraud;
  EXPECT_THROW(open_data(options), UserError);
}

TEST(OpenData, HeldOutRowsOfATableStayOutOfTheFit) {
  const TestFolder folder;
  folder.write("t.csv", "x,y\n1,0\n3,1\n1000,0\n");
  DataOptions options;
  options.train.files = {folder.path("t.csv")};
  options.encoding.label = "y";
  options.hold_out = 0.34;
  const Data data = open_data(options);
  EXPECT_EQ(data.train->size(), 2);
  EXPECT_EQ(data.eval->size(), 1);
  EXPECT_NE(data.encoding.find("mean=2 deviation=1"), std::string::npos) << data.encoding;
}

TEST(OpenData, KeptRowsOfATableChangeNothing) {
  const TestFolder folder;
  folder.write("t.csv", "x,y\n1,0\n3,1\n1000,0\n4,1\n");
  folder.write("e.csv", "x,y\n2,0\n7,1\n");
  for (const bool apart : {false, true}) {
    DataOptions options;
    options.train.files = {folder.path("t.csv")};
    if (apart) options.eval.files = {folder.path("e.csv")};
    options.encoding.label = "y";
    options.hold_out = 0.34;
    const Data plain = open_data(options);
    options.cache = true;
    options.cache_folder = folder.path("rows");
    const Data kept = open_data(options);
    EXPECT_EQ(kept.encoding, plain.encoding);
    for (const auto part : {&Data::train, &Data::eval}) {
      const Source &rows = *(kept.*part), &files = *(plain.*part);
      EXPECT_EQ(rows.fingerprint(), files.fingerprint());
      EXPECT_TRUE(files.could_keep_rows());
      EXPECT_FALSE(rows.could_keep_rows());
      ASSERT_EQ(rows.size(), files.size());
      Batch a(rows.columns(), 1), b(files.columns(), 1);
      for (int64_t record = 0; record < rows.size(); ++record) {
        rows.fill(std::vector{record}, a);
        files.fill(std::vector{record}, b);
        for (size_t c = 0; c < a.columns().size(); ++c)
          EXPECT_EQ(std::memcmp(a.data(c), b.data(c), static_cast<size_t>(a.bytes(c))), 0) << record;
      }
    }
  }
}

TEST(OpenData, TextIsSplitByWindows) {
  const TestFolder folder;
  folder.write("t.txt", std::string(161, 'a'));
  DataOptions options;
  options.format = DataOptions::Format::kText;
  options.train.files = {folder.path()};
  options.vocab = 256;
  options.seq = 16;
  options.hold_out = 0.2;
  const Data data = open_data(options);
  EXPECT_EQ(data.train->size(), 8);
  EXPECT_EQ(data.eval->size(), 2);
  options.eval.files = {folder.path("t.txt")};
  EXPECT_EQ(open_data(options).train->size(), 10);
}

}  // namespace
}  // namespace lockstep
