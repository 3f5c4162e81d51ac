// TableEncoding: how the columns of a table become model inputs, fitted on the training shards and then
// applied unchanged to every other shard.
//
//   numeric      log1p where the column is skewed, then (x - mean) / deviation, clipped to +-kNumericClip. A
//                missing value becomes the fill value (the mean, unless one is given) and sets the column's
//                missing flag.
//   categorical  bucket 0 when missing, otherwise 1 + hash(value) in [1, buckets).
//   made         columns that transforms have scaled or numbered already are taken as they are.
//   label        by data/transform/label_encoding.h.
//   weight       a number of at least 0, divided by the mean; times the weight of the label's class.
// What is missing is marked, or a text that data/format/missing_texts.h has.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/format/column_block.h"
#include "data/transform/label_fit.h"
#include "data/transform/statistics.h"

namespace lockstep {

inline constexpr double kNumericClip = 10.0;
// The model's input that holds what records count, where they do not count alike.
inline constexpr const char* kWeightsColumn = "weights";

// What the job file says about a table. With neither numeric nor categorical columns named, their roles are
// inferred.
struct EncodingOptions {
  std::string label;
  LabelTask task = LabelTask::kAuto;
  std::string weight = {};  // the column that says how much a training record counts; empty: none
  ClassWeights class_weights = {};
  std::vector<std::string> numeric;
  std::vector<std::string> categorical;
  std::vector<std::string> ignore;
  // Numeric columns that take log1p; absent: those that are never negative and have a skewness above 2.
  std::optional<std::vector<std::string>> log1p;
  std::optional<double> fill;  // for missing numbers; absent: the column's mean
  int64_t buckets = 10000;     // rows of each categorical table
  double hold_out = 0;         // the last share of the records, which the fit leaves out

  bool names_roles() const { return !numeric.empty() || !categorical.empty(); }
};

struct NumericColumn {
  std::string name;
  bool log1p = false;
  bool missing_flag = false;  // where training data has missing values
  double mean = 0;            // after log1p
  double deviation = 1;
  double fill = 0;     // as it reaches the model
  bool as_is = false;  // neither log1p, nor scaled, nor clipped
};

struct TableEncoding {
  std::string label;
  std::vector<NumericColumn> numeric;
  std::vector<std::string> categorical;
  int64_t buckets = 0;
  // Categorical columns whose values are rows of the table already, all below this.
  std::map<std::string, int64_t, std::less<>> ids = {};
  LabelEncoding labels = {};
  std::string weight = {};  // the column; empty: none
  double weight_mean = 1;

  int64_t dense() const;  // numeric columns, then the missing flags
  bool weighted() const { return !weight.empty() || !labels.weights.empty(); }
};

// One line per column with every constant in full: stored with a run, and hashed into its identity.
std::string to_text(const TableEncoding& encoding);
// The constants of such a text for an encoding that has the same columns. Throws UserError if it has others.
void take_constants(std::string_view text, TableEncoding& encoding);
// What the label means by such a text, before which other transforms may have theirs. Throws UserError.
LabelEncoding labels_in(std::string_view text);

int32_t category_bucket(std::string_view value, int64_t buckets);

// What the values of a column look like: numbers, nearly all of them; texts that repeat; or nothing to learn
// from, with no value at all or texts that hardly repeat (identifiers, times). data/table/column_sample.h
// decides.
enum class ColumnLook : uint8_t { kNumeric, kCategorical, kIgnored };

// The roles of a table's columns, without constants yet. `looks` are those of its columns, of no use where
// the options name roles; `name` is its file. `made` are the columns that transforms make or change: their
// kind says what they are.
TableEncoding resolve_roles(const EncodingOptions& options, std::string_view name,
                            const std::vector<std::string>& header, const std::vector<ColumnLook>& looks,
                            const std::vector<BlockField>& made = {});

// What fitting a numeric column needs to know of its values: theirs, and those of their logarithms, which are
// of no use once a value is negative.
struct NumericSummary {
  int64_t records = 0;
  Moments values, logs;

  void merge(const NumericSummary& next);
};
NumericSummary summarise(std::span<const double> values);  // NaN is missing

// Fits a numeric column to the training values.
void fit_numeric(const EncodingOptions& options, const NumericSummary& summary, NumericColumn& column);
float encode_number(const NumericColumn& column, double value);
void encode_numbers(const NumericColumn& column, std::span<const double> values, std::span<float> out);

}  // namespace lockstep
