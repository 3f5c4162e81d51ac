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
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/synthetic/fraud.h"

namespace lockstep {

// FraudRow: one generated card transaction as the fields of a table, in the order of fraud_columns(). What
// every format writes comes from here, so that all of them hold the same records.
//
//   time                ISO 8601, from 2025-01-01
//   card, merchant      identifiers such as k001234 and m00042
//   category            the merchant's trade: grocery, electronics, ...
//   country             of the merchant, two letters
//   home_country        of the card
//   channel             chip, contactless, swipe, online or atm
//   hour                of the day, 0 to 23
//   amount              with two decimals
//   seconds_since_last  since the card's last transaction; missing for its first
//   previous_amount     of that transaction; missing for the first
//   mean_amount         of all the card's transactions so far; missing for the first
//   count_1h, count_24h the card's transactions in the hour and the day before, at most 16
//   known_merchant      1 when the merchant is one of the last four where the card was used
//   is_fraud            1 when the transaction was reported as fraud
enum class FraudField : uint8_t { kText, kWhole, kDecimal };

struct FraudColumn {
  std::string_view name;
  FraudField field;
};

inline constexpr size_t kFraudColumns = 16;
std::span<const FraudColumn, kFraudColumns> fraud_columns();

class FraudRow {
 public:
  void set(const fraud::World& world, const fraud::Transaction& transaction);

  // Empty where the value is missing. Holds no character that CSV or JSON would have to escape.
  std::string_view text(size_t column) const {
    const size_t from = column == 0 ? 0 : ends_[column - 1] + 1;
    return {text_.data() + from, ends_[column] - from};
  }
  // All fields with a comma after each, the last one's a newline: a line of CSV as it is.
  std::string_view line() const { return {text_.data(), ends_.back() + 1}; }

 private:
  // Every field has a bound: names of at most 16 letters, numbers of at most 20 digits.
  std::array<char, kFraudColumns * 32> text_;
  std::array<size_t, kFraudColumns> ends_{};
};

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

// Generated card transactions in the columnar formats that data/format/table_writer.h writes: text as text,
// whole numbers as i64, amounts as the f64 nearest to their cents, which is what the other formats are read
// as.
std::unique_ptr<FraudWriter> make_fraud_table_writer(std::string_view format);

}  // namespace lockstep
