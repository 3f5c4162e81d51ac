// How a table's columns become inputs: encoding, inference of roles, and what each malformed table is told.
#include "data/transform/table_encoding.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <numeric>
#include <set>

#include "base/error.h"
#include "data/table/table.h"

namespace lockstep {
namespace {

EncodingOptions small_options() {
  EncodingOptions options;
  options.label = "y";
  options.numeric = {"x"};
  options.categorical = {"c"};
  options.buckets = 100;
  return options;
}

std::function<Shards()> shard(const std::string& name, const std::string& text) {
  return [name, text] {
    Shards shards;
    shards.push_back(open_text(name, text));
    return shards;
  };
}

Table table_of(const std::string& text, const EncodingOptions& options = small_options()) {
  TableOptions table;
  table.encoding = options;
  return open_table(table, shard("t.csv", text));
}

Batch read(const Source& source, const std::vector<int64_t>& records) {
  Batch batch(source.columns(), static_cast<int64_t>(records.size()));
  source.fill(records, batch);
  return batch;
}

void read_all(const Source& source) {
  std::vector<int64_t> records(static_cast<size_t>(source.size()));
  std::iota(records.begin(), records.end(), 0);
  read(source, records);
}

std::string error_of(const std::string& text, const EncodingOptions& options = small_options()) {
  try {
    const Table table = table_of(text, options);
    read_all(*table.source);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(TableEncoding, EncodesColumnsForTheModel) {
  const Table table = table_of("x,c,y\n1,a,0\n3,b,1\n5,a,0\n");
  EXPECT_EQ(table.source->size(), 3);
  const Batch batch = read(*table.source, {2, 0, 1, kNoRecord});
  const float z = static_cast<float>(2 / std::sqrt(8.0 / 3));
  const auto dense = batch.values<float>(batch.index_of("dense"));
  EXPECT_FLOAT_EQ(dense[0], z);
  EXPECT_FLOAT_EQ(dense[1], -z);
  EXPECT_EQ(dense[2], 0.0f);
  EXPECT_EQ(dense[3], 0.0f);
  const auto category = batch.values<int32_t>(batch.index_of("category.0"));
  EXPECT_EQ(category[0], category[1]);
  EXPECT_EQ(category[0], category_bucket("a", 100));
  EXPECT_EQ(category[2], category_bucket("b", 100));
  EXPECT_EQ(batch.values<float>(batch.index_of("labels"))[2], 1.0f);
  EXPECT_TRUE(table.source->describe(2).starts_with("t.csv:4")) << table.source->describe(2);
}

TEST(TableEncoding, MissingNumbersBecomeTheMeanAndAFlag) {
  const Table table = table_of("x,c,y\n1,a,0\nNA,a,1\n3,,0\n");
  EXPECT_EQ(table.encoding->encoding().dense(), 2);
  const Batch batch = read(*table.source, {0, 1, 2});
  EXPECT_EQ(std::vector<float>(batch.values<float>(0).begin(), batch.values<float>(0).end()),
            (std::vector<float>{-1, 0, 0, 1, 1, 0}));
  EXPECT_EQ(batch.values<int32_t>(1)[2], 0);
  EncodingOptions options = small_options();
  options.fill = 3;
  const Table filled = table_of("x,c,y\n1,a,0\nNA,a,1\n3,,0\n", options);
  EXPECT_EQ(read(*filled.source, {1}).values<float>(0)[0], 1.0f);
}

TEST(TableEncoding, SkewedColumnsTakeLog1p) {
  std::string text = "x,c,y\n";
  for (int i = 0; i < 300; ++i) text += fmt::format("{},a,0\n", i == 50 ? 100000 : i);
  EXPECT_TRUE(table_of(text).encoding->encoding().numeric[0].log1p);
  EncodingOptions options = small_options();
  options.log1p = std::vector<std::string>{};
  EXPECT_FALSE(table_of(text, options).encoding->encoding().numeric[0].log1p);
  EXPECT_EQ(read(*table_of(text, options).source, {50}).values<float>(0)[0], kNumericClip);
}

TEST(TableEncoding, ManyNumbersAreEncodedAsEachAlone) {
  const std::vector<double> values{0, -0.0, 1.5, -7, 1e30, -1e30, std::nan(""), 3.25, 12, 1e-9, 1000};
  const NumericColumn scaled{.name = "x", .mean = 2.5, .deviation = 1.25, .fill = 0.75};
  NumericColumn logs = scaled, as_is = scaled;
  logs.log1p = true;
  as_is.as_is = true;
  for (const NumericColumn& column : {scaled, logs, as_is}) {
    std::vector<float> together(values.size());
    encode_numbers(column, values, together);
    for (size_t i = 0; i < values.size(); ++i) {
      const float alone = encode_number(column, values[i]);
      EXPECT_EQ(std::memcmp(&together[i], &alone, sizeof alone), 0) << values[i];
    }
  }
}

TEST(TableEncoding, RolesAreInferred) {
  std::string text = "id,amount,kind,empty,y\n";
  for (int i = 0; i < 300; ++i) text += fmt::format("t{},{}.5,k{},,{}\n", i, i, i % 3, i % 2);
  EncodingOptions options;
  options.label = "y";
  const TableEncoding encoding = table_of(text, options).encoding->encoding();
  ASSERT_EQ(encoding.numeric.size(), 1u);
  EXPECT_EQ(encoding.numeric[0].name, "amount");
  EXPECT_EQ(encoding.categorical, std::vector<std::string>{"kind"});
}

TEST(TableEncoding, HeldOutShardsUseTheTrainingConstants) {
  const Table train = table_of("x,c,y\n1,a,0\n3,b,1\n");
  // Columns are found by name, so another order gives the same record.
  const Table eval =
      open_table({.encoding = small_options()}, train, shard("e.csv", "y,extra,c,x\n1,q,b,3\n"));
  const Batch a = read(*train.source, {1});
  const Batch b = read(*eval.source, {0});
  for (size_t i = 0; i < a.columns().size(); ++i) EXPECT_EQ(std::memcmp(a.data(i), b.data(i), 4), 0);
}

TEST(TableEncoding, FingerprintFollowsContentAndEncoding) {
  const std::string text = "x,c,y\n1,a,0\n3,b,1\n";
  const std::string first = table_of(text).source->fingerprint();
  EXPECT_EQ(first, table_of(text).source->fingerprint());
  EXPECT_NE(first, table_of("x,c,y\n1,a,0\n3,B,1\n").source->fingerprint());
  EncodingOptions options = small_options();
  options.buckets = 101;
  EXPECT_NE(first, table_of(text, options).source->fingerprint());
}

TEST(TableEncoding, BucketsAreStableAndSpread) {
  EXPECT_EQ(category_bucket("", 1000), 0);
  // Golden: another answer would shuffle the rows of every trained table.
  EXPECT_EQ(category_bucket("grocery", 1000), 711);
  EXPECT_EQ(category_bucket("m00042", 1000000), 250824);
  std::set<int32_t> seen;
  for (int i = 0; i < 1000; ++i) {
    const int32_t bucket = category_bucket(fmt::format("m{:05}", i), 100000);
    EXPECT_GE(bucket, 1);
    EXPECT_LT(bucket, 100000);
    seen.insert(bucket);
  }
  EXPECT_GT(seen.size(), 980u);  // 995 expected of a random function
}

TEST(TableEncoding, MalformedTablesAreNamedByFileAndLine) {
  EXPECT_TRUE(
      error_of("x,c,y\n1,a,0\n1,a\n").starts_with("t.csv:3: 2 fields, but the header names 3 columns"));
  EXPECT_TRUE(error_of("x,c,y\n1,a,0\nmany,a,0\n")
                  .starts_with("t.csv:3: column 'x' has 'many', which is not a number"));
  EXPECT_TRUE(error_of("x,c,y\n1e99,a,0\n").starts_with("t.csv:2: column 'x' has '1e99'"));
  std::string mostly = "x,c,y\n";
  for (int i = 0; i < 200; ++i) mostly += fmt::format("1,a,{}\n", i % 2);
  EXPECT_TRUE(
      error_of(mostly + "1,a,2\n").starts_with("t.csv:202: the label 'y' is '2'; it must be 0 or 1, as"));
  EXPECT_TRUE(error_of("x,c,y\n1,a,\n").starts_with("t.csv:2: the label 'y' is ''"));
  EXPECT_TRUE(error_of("x,c,label\n1,a,1\n").starts_with("t.csv:1: there is no column 'y'"));
  EXPECT_TRUE(error_of("x,c,x\n").starts_with("t.csv:1: two columns are called 'x'"));
  EXPECT_TRUE(error_of("").starts_with("t.csv: the file is empty"));
  EXPECT_TRUE(error_of("x,c,y\n").starts_with("t.csv: the file has a header but no records"));
  EXPECT_TRUE(error_of("x,c,y\n1,\"a,0\n").starts_with("t.csv:2: the quote that opens here is never closed"));
}

TEST(TableEncoding, ImpossibleRolesAreRefused) {
  const std::string text = "x,c,y\n-1,a,0\n";
  EncodingOptions options = small_options();
  options.categorical = {"x"};
  EXPECT_NE(error_of(text, options).find("two roles"), std::string::npos);
  options = small_options();
  options.log1p = std::vector<std::string>{"x"};
  EXPECT_NE(error_of(text, options).find("at least 0"), std::string::npos);
  options.log1p = std::vector<std::string>{"c"};
  EXPECT_NE(error_of(text, options).find("not a numeric column"), std::string::npos);
  options = small_options();
  options.buckets = 1;
  EXPECT_NE(error_of(text, options).find("at least 2"), std::string::npos);
  options = small_options();
  options.numeric = {"X"};
  EXPECT_NE(error_of(text, options).find("did you mean x"), std::string::npos) << error_of(text, options);
}

}  // namespace
}  // namespace lockstep
