// Card-transaction logs as files: train and eval shards, cut by time (the last transactions are held out).
// Columns are listed in data/synthetic/fraud_row.h, formats in data/synthetic/fraud_writer.h.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

struct FraudOptions {
  int64_t rows = 200000;  // both parts together
  uint64_t seed = 7;
  int64_t eval_rows = 40000;  // the last ones in time
  bool makes_eval = true;     // false: they are counted, but not made
  std::string format = "csv";
  int shards = 4;  // of the training part; the held-out part has a quarter as many, at least 1
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

// Writes train-<i>-of-<n>.<format> and eval-<i>-of-<n>.<format> into a folder, made if it is not there.
// Shards of an earlier call are replaced when overwrite is set, and refused otherwise.
FraudReport write_fraud(const FraudOptions& options, const std::string& folder, bool overwrite = false);

// The same shards in memory.
struct FraudShard {
  std::string name;
  std::shared_ptr<const std::string> text;
};
struct FraudShards {
  std::vector<FraudShard> train;
  std::vector<FraudShard> eval;
};
FraudShards make_fraud(const FraudOptions& options);

}  // namespace lockstep
