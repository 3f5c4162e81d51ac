// Tables with transforms: fitted to the training records alone, the same for any threads, budget, format and
// place of fitting, and used unchanged for other shards.
#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.h"
#include "base/test_folder.h"
#include "data/convert/convert.h"
#include "data/table/table.h"
#include "data/testing/test_columns.h"

namespace lockstep {
namespace {

std::string table_text(int64_t first, int64_t records) {
  std::string text = "time,amount,kind,country,y\n";
  for (int64_t i = first; i < first + records; ++i)
    text +=
        fmt::format("2025-01-{:02}T{:02}:{:02}:{:02},{},k{},{},{}\n", 1 + i % 28, i % 24, i % 60, i / 60 % 60,
                    i % 13 == 0 ? "" : fmt::format("{}.{:02}", i * 7919 % 1000, i % 100), i * i % 53,
                    i % 7 == 0   ? ""
                    : i % 2 == 0 ? "DE"
                                 : "FR",
                    i % 3 == 0 ? 1 : 0);
  return text;
}

const std::vector<TransformOptions> kChain{
    {"fill", {{"columns", {"amount"}}, {"method", {"median"}}, {"flag", {"yes"}}}},
    {"bucketise", {{"columns", {"amount"}}, {"as", {"amount_bucket"}}, {"quantiles", {"8"}}}},
    {"vocabulary", {{"columns", {"kind"}}, {"size", {"10"}}}},
    {"time_features", {{"column", {"time"}}, {"features", {"weekday", "hour_cyclic"}}}},
    {"cross", {{"columns", {"amount_bucket", "country"}}, {"buckets", {"50"}}}},
    {"normalise", {{"columns", {"amount"}}, {"method", {"min_max"}}}},
};

TableOptions options_with(std::vector<TransformOptions> transforms, int threads = 1) {
  TableOptions options;
  options.encoding.label = "y";
  options.encoding.buckets = 100;
  options.transforms = std::move(transforms);
  options.threads = threads;
  options.budget = int64_t{1} << 28;
  return options;
}

std::vector<float> dense_row(const Table& table, int64_t record) {
  Batch batch(table.source->columns(), 1);
  table.source->fill({&record, 1}, batch);
  const auto values = batch.values<float>(0);
  return {values.begin(), values.end()};
}

class TableTransforms : public testing::Test {
 protected:
  TableTransforms() {
    folder_.write("a.csv", table_text(0, 3000));
    folder_.write("b.csv", table_text(5000, 2000));
  }
  Table open(const TableOptions& options) const {
    return open_table(options, {folder_.path("a.csv"), folder_.path("b.csv")});
  }
  std::string refusal(const TableOptions& options) const {
    return problem_with([&] { open(options); });
  }
  void forget() const { std::filesystem::remove_all(folder_.path(".lockstep-index")); }

  TestFolder folder_;
};

TEST_F(TableTransforms, MakeColumnsOfTheModel) {
  const Table table = open(options_with(kChain));
  const TableEncoding& encoding = table.encoding->encoding();
  std::vector<std::string> numeric;
  for (const NumericColumn& column : encoding.numeric) numeric.push_back(column.name);
  EXPECT_EQ(numeric, (std::vector<std::string>{"amount", "amount_missing", "time_weekday", "time_hour_sin",
                                               "time_hour_cos"}));
  EXPECT_EQ(encoding.categorical,
            (std::vector<std::string>{"kind", "country", "amount_bucket", "amount_bucket_x_country"}));
  EXPECT_EQ(encoding.ids.size(), 3U);
  EXPECT_EQ(encoding.ids.at("kind"), 12);
  EXPECT_TRUE(encoding.numeric[0].as_is);
  EXPECT_FALSE(encoding.numeric[2].as_is);
  // Record 13 * 12 has no amount, and the hour 12.
  const std::vector<float> row = dense_row(table, 156);
  ASSERT_EQ(row.size(), 5U);
  EXPECT_GT(row[0], 0.4f);  // the median, of values up to the largest
  EXPECT_LT(row[0], 0.6f);
  EXPECT_EQ(row[1], 1.0f);
  EXPECT_NEAR(row[4], -1.0f, 1e-6);
}

TEST_F(TableTransforms, AreFittedTheSameByAnyNumberOfThreads) {
  const Table one = open(options_with(kChain));
  forget();
  const Table four = open(options_with(kChain, 4));
  EXPECT_EQ(one.constants(), four.constants());
  EXPECT_EQ(one.source->fingerprint(), four.source->fingerprint());
  EXPECT_NE(one.constants().find("column kind: 10 words\n"), std::string::npos) << one.constants();
}

TEST_F(TableTransforms, AreFittedOnceAndKept) {
  const Table first = open(options_with(kChain));
  int64_t fits = 0;
  std::string last;
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path(".lockstep-index")))
    if (entry.path().filename().string().starts_with("fit-")) {
      ++fits;
      last = entry.path().string();
    }
  EXPECT_EQ(fits, 5);  // fill, bucketise, vocabulary, normalise, the encoding
  EXPECT_EQ(open(options_with(kChain)).constants(), first.constants());
  // Damage is noticed, also where the text is still one of constants.
  std::string kept = read_file(last);
  char& digit = kept[kept.find_last_of("0123456789")];
  digit = digit == '1' ? '2' : '1';
  for (const std::string& damaged : {kept, std::string("column nobody: 3\n"), std::string()}) {
    write_file(last, damaged);
    EXPECT_EQ(open(options_with(kChain)).constants(), first.constants());
  }
}

TEST_F(TableTransforms, AreFittedToTheTrainingRecordsAlone) {
  TableOptions options = options_with(kChain);
  options.encoding.hold_out = 0.4;
  const std::string held_out = open(options).constants();
  const Table alone = open_table(options_with(kChain), {folder_.path("a.csv")});
  EXPECT_EQ(held_out, alone.constants());
  EXPECT_NE(held_out, open(options_with(kChain)).constants());
  // Others are encoded by these constants.
  const Table eval = open_table(options_with(kChain), alone, {folder_.path("b.csv")});
  EXPECT_EQ(eval.constants(), alone.constants());
  EXPECT_EQ(dense_row(eval, 7), dense_row(open(options), 3007));
}

TEST_F(TableTransforms, AreFittedToTheTrainingSideOfASplit) {
  TableOptions options = options_with(kChain);
  options.split = TableSplit{"kind", 0.4, 4};
  const Table split = open(options);
  EXPECT_NE(split.constants().find("column kind: 10 words\n"), std::string::npos);
  EXPECT_NE(split.constants(), open(options_with(kChain)).constants());
  // Kinds that are held out are not in the vocabulary.
  Batch batch(split.source->columns(), 1);
  for (int64_t record = 0; record < 200; ++record) {
    split.held_out->fill({&record, 1}, batch);
    EXPECT_EQ(batch.values<int32_t>(1)[0], 1);
  }
}

TEST_F(TableTransforms, NameWhatIsWrong) {
  EXPECT_EQ(refusal(options_with({{"clip", {{"columns", {"amonut"}}}}})),
            "transform clip: there is no column 'amonut'; did you mean amount?");
  EXPECT_EQ(refusal(options_with({{"vocabulary", {{"columns", {"kind"}}, {"size", {"99"}}}}})),
            "column 'kind' has up to 101 categories, but the model's tables have 100 rows; set model.rows to "
            "at least "
            "101, or make fewer");
  EXPECT_EQ(refusal(options_with({{"log", {{"columns", {"kind"}}}}})),
            folder_.path("a.csv") +
                ":2: column 'kind' has 'k0', which is not a number (of at most 1e30); list it under "
                "data.missing_values if it means a missing value, or name the column "
                "under columns.categorical (byte 27)");
  TableOptions options = options_with({{"cross", {{"columns", {"kind", "country"}}, {"buckets", {"9"}}}}});
  options.encoding.numeric = {"amount"};
  EXPECT_EQ(refusal(options),
            "a transform makes column 'kind_x_country', which nothing uses; name it under "
            "columns.categorical, or under "
            "columns.ignore");
  options.encoding.categorical = {"kind_x_country"};
  EXPECT_EQ(open(options).encoding->encoding().categorical.size(), 1U);
}

TEST_F(TableTransforms, TokensAreNotForTabularModels) {
  EXPECT_EQ(refusal(options_with({{"tokenise", {{"columns", {"kind"}}}}})),
            "a transform makes several values in a record of column 'kind', which a tabular model does not "
            "take; use "
            "model.family encoder with data.train.text");
}

TEST_F(TableTransforms, TextIsReadForAnEncoder) {
  TableOptions options = options_with({{"fill", {{"columns", {"country"}}, {"value", {"none"}}}}});
  options.text = TextRole{"country", "y", 6, 257, 2};
  const Table table = open(options);
  EXPECT_EQ(table.encoding, nullptr);
  Batch batch(table.source->columns(), 2);
  table.source->fill(std::vector<int64_t>{14, kNoRecord}, batch);
  const auto tokens = batch.values<int32_t>(0);
  EXPECT_EQ(std::vector<int32_t>(tokens.begin(), tokens.begin() + 6),
            (std::vector<int32_t>{0, 'n' + 1, 'o' + 1, 'n' + 1, 'e' + 1, 0}));
  const auto visible = batch.values<uint8_t>(batch.index_of("keys_visible"));
  EXPECT_EQ(std::vector<uint8_t>(visible.begin(), visible.end()),
            (std::vector<uint8_t>{1, 1, 1, 1, 1, 0, 1, 0, 0, 0, 0, 0}));  // a row of no record has one key
  EXPECT_EQ(batch.values<int32_t>(batch.index_of("labels"))[1], kIgnoredLabel);
  EXPECT_EQ(table.source->fingerprint(), open(options).source->fingerprint());
}

TEST_F(TableTransforms, NameTheLineOfABadValue) {
  folder_.write("bad.csv", table_text(0, 600) + "tomorrow,1,k1,DE,1\n");
  EXPECT_EQ(problem_with([&] { open_table(options_with(kChain), {folder_.path("bad.csv")}); }),
            folder_.path("bad.csv") +
                ":602: column 'time' has 'tomorrow', which is no time; write it as "
                "2025-01-31T08:05:09Z, or as a number since 1970");
}

}  // namespace
}  // namespace lockstep
