// Card-transaction logs as CSV: train and eval shards, cut by time (the last transactions are held out).
//
// Columns, in this order:
//   time                ISO 8601, from 2025-01-01
//   card, merchant      identifiers such as k001234 and m00042
//   category            the merchant's trade: grocery, electronics, ...
//   country             of the merchant, two letters
//   home_country        of the card
//   channel             chip, contactless, swipe, online or atm
//   hour                of the day, 0 to 23
//   amount              with two decimals
//   seconds_since_last  since the card's last transaction; empty for its first
//   previous_amount     of that transaction; empty for the first
//   mean_amount         of all the card's transactions so far; empty for the first
//   count_1h, count_24h the card's transactions in the hour and the day before, at most 16
//   known_merchant      1 when the merchant is one of the last four where the card was used
//   is_fraud            1 when the transaction was reported as fraud
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "data/csv.h"

namespace lockstep {

struct FraudOptions {
  int64_t rows = 200000;  // both parts together
  uint64_t seed = 7;
  int64_t eval_rows = 40000;  // the last ones in time
  int shards = 4;             // of the training part; the held-out part has a quarter as many, at least 1
};

struct FraudReport {
  int64_t train_rows = 0;
  int64_t eval_rows = 0;
  int64_t frauds = 0;
  int64_t bytes = 0;
  std::vector<std::string> files;
};

// Throws UserError for options that give an empty part or shard.
void check_fraud_options(const FraudOptions& options);

// Writes train-<i>-of-<n>.csv and eval-<i>-of-<n>.csv into a folder, made if it is not there. Shards of an
// earlier call are replaced when overwrite is set, and refused otherwise.
FraudReport write_fraud(const FraudOptions& options, const std::string& folder, bool overwrite = false);

// The same shards in memory.
struct FraudShards {
  std::vector<CsvShard> train;
  std::vector<CsvShard> eval;
};
FraudShards make_fraud(const FraudOptions& options);

}  // namespace lockstep
