// FraudWriter: generated card transactions as the bytes of one file format.
//
//   csv       a header line, empty fields for missing values
//   jsonl     one object a line; numbers as numbers, null for missing values
//   tfrecord  one tf.train.Example a record: text and amounts as bytes, whole numbers as int64, a
//             feature without values for what is missing. Amounts are text because float32, the format's
//             only other choice, cannot hold cents.
//   block, parquet  columns (data/fraud_table.h)
//
// The same transactions give the same model inputs in all of them.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/fraud_row.h"

namespace lockstep {

class FraudWriter {
 public:
  virtual ~FraudWriter() = default;

  // Each appends what a shard begins with, a record, what a shard ends with.
  virtual void begin(std::string& out);
  virtual void add(const FraudRow& row, std::string& out) = 0;
  virtual void end(std::string& out);
};

// Throws UserError that names the formats there are. Files of a format are called after it: train-*.jsonl.
std::unique_ptr<FraudWriter> make_fraud_writer(std::string_view format);
std::vector<std::string_view> fraud_formats();

}  // namespace lockstep
