// The transaction generator: the same bytes for a seed, plausible shares, and signs that alone do not
// convict.
#include "data/synthetic/fraud.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/sha256.h"
#include "base/test_folder.h"
#include "data/synthetic/fraud_shards.h"
#include "data/table/table.h"

namespace lockstep {
namespace {

std::vector<fraud::Transaction> make(uint64_t seed, int64_t rows) {
  fraud::Generator generator(seed, rows);
  std::vector<fraud::Transaction> transactions;
  for (int64_t i = 0; i < rows; ++i) transactions.push_back(generator.next());
  return transactions;
}

template <typename Sign>
double share_of(const std::vector<fraud::Transaction>& transactions, bool fraud, const Sign& sign) {
  double with = 0, all = 0;
  for (const auto& t : transactions)
    if (t.fraud == fraud) {
      all += 1;
      with += sign(t);
    }
  return with / all;
}

TEST(Fraud, AboutOnePercentAndInOrderOfTime) {
  const auto transactions = make(7, 100000);
  const double share = static_cast<double>(std::count_if(transactions.begin(), transactions.end(),
                                                         [](const auto& t) { return t.fraud; })) /
                       1e5;
  EXPECT_GT(share, 0.008);
  EXPECT_LT(share, 0.014);
  EXPECT_TRUE(std::is_sorted(transactions.begin(), transactions.end(),
                             [](const auto& a, const auto& b) { return a.time < b.time; }));
  EXPECT_LT(transactions.back().time, 90 * 86400);
}

TEST(Fraud, AmountsAreSkewedAndPositive) {
  std::vector<int64_t> cents;
  double mean = 0;
  for (const auto& t : make(3, 50000)) {
    cents.push_back(t.cents);
    mean += static_cast<double>(t.cents) / 50000;
  }
  std::sort(cents.begin(), cents.end());
  EXPECT_GE(cents.front(), 50);
  EXPECT_GT(mean, 1.5 * static_cast<double>(cents[25000]));
}

// Every sign is more frequent in fraud, and still most often honest.
TEST(Fraud, SignsOverlap) {
  const auto transactions = make(5, 200000);
  const fraud::Generator generator(5, 200000);
  const auto abroad = [&](const auto& t) {
    return t.channel != fraud::Channel::kOnline && t.country != generator.world().card(t.card).home;
  };
  const auto quick = [](const auto& t) { return t.last_hour >= 1; };
  const auto night = [](const auto& t) { return t.time / 3600 % 24 < 6; };
  const auto large = [](const auto& t) { return !t.first && t.cents > 3 * t.mean_cents; };
  const auto check = [&](const char* name, const auto& sign) {
    const double in_fraud = share_of(transactions, true, sign);
    const double in_honest = share_of(transactions, false, sign);
    EXPECT_GT(in_fraud, 2 * in_honest) << name;
    EXPECT_LT(in_fraud * 0.011, in_honest) << name << ": most with this sign would be fraud";
  };
  check("abroad", abroad);
  check("quick", quick);
  check("night", night);
  check("large", large);
}

TEST(Fraud, SameSeedSameBytes) {
  FraudOptions options;
  options.rows = 5000;
  options.eval_rows = 1000;
  options.shards = 2;
  const FraudShards shards = make_fraud(options);
  ASSERT_EQ(shards.train.size(), 2u);
  ASSERT_EQ(shards.eval.size(), 1u);
  // Golden: the rows of a seed are part of recorded runs.
  EXPECT_EQ(sha256(*shards.train[0].text + *shards.train[1].text + *shards.eval[0].text),
            "d50c89361b1a39fab8565ec1a4e39bdf1ccca229e873e5dc0e0a21d77ebc7ad3");
  options.seed = 8;
  EXPECT_NE(*make_fraud(options).train[0].text, *shards.train[0].text);
}

TEST(Fraud, FilesEqualMemoryAndLoadAsCsv) {
  const TestFolder folder;
  FraudOptions options;
  options.rows = 3000;
  options.eval_rows = 600;
  options.shards = 3;
  const FraudReport report = write_fraud(options, folder.path("tx"));
  EXPECT_EQ(report.train_rows, 2400);
  EXPECT_EQ(report.files.size(), 4u);
  EXPECT_EQ(read_file(folder.path("tx/train-00001-of-00003.csv")), *make_fraud(options).train[1].text);

  TableOptions table;
  table.encoding.label = "is_fraud";
  table.encoding.ignore = {"card"};
  const Table train = open_table(table, {folder.path("tx/train-*.csv")});
  const Table eval = open_table(table, train, {folder.path("tx/eval-*.csv")});
  EXPECT_EQ(train.source->size(), 2400);
  EXPECT_EQ(eval.source->size(), 600);
  const TableEncoding& encoding = train.encoding->encoding();
  EXPECT_EQ(encoding.categorical,
            (std::vector<std::string>{"merchant", "category", "country", "home_country", "channel"}));
  EXPECT_EQ(encoding.numeric.size(), 8u);
  EXPECT_EQ(encoding.dense(), 11);  // and three flags: nothing is known of a card at first
}

TEST(Fraud, KeepsEarlierShardsUnlessTold) {
  const TestFolder folder;
  folder.write("train-00000-of-00009.csv", "old");
  folder.write("notes.csv", "mine");
  FraudOptions options;
  options.rows = 1000;
  options.eval_rows = 200;
  EXPECT_THROW(write_fraud(options, folder.path()), UserError);
  write_fraud(options, folder.path(), true);
  EXPECT_FALSE(std::filesystem::exists(folder.path("train-00000-of-00009.csv")));
  EXPECT_TRUE(std::filesystem::exists(folder.path("notes.csv")));
}

TEST(Fraud, RefusesEmptyParts) {
  FraudOptions options;
  options.rows = 3;
  EXPECT_THROW(make_fraud(options), UserError);
  options.rows = 1000;
  options.eval_rows = 1000;
  EXPECT_THROW(make_fraud(options), UserError);
  options.eval_rows = 0;
  EXPECT_THROW(make_fraud(options), UserError);
  options.eval_rows = 200;
  options.shards = 0;
  EXPECT_THROW(make_fraud(options), UserError);
}

}  // namespace
}  // namespace lockstep
