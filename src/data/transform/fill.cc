// fill: a value for what is missing: a constant, or the mean or median of the training records; and on
// request a column that says where it was missing.
#include <cmath>

#include "base/error.h"
#include "data/format/value_text.h"
#include "data/transform/column_transform.h"
#include "data/transform/column_values.h"
#include "data/transform/columns_fit.h"
#include "data/transform/statistics.h"

namespace lockstep {
namespace {

struct ColumnMiddle {
  bool median = false;
  Moments moments;
  QuantileSketch sketch;

  void add(const BlockColumn& column, size_t) {
    std::vector<double> numbers;
    numbers_of(column, numbers);
    if (!median) moments.merge(moments_of(numbers));
    for (const double x : numbers)
      if (median && !std::isnan(x)) sketch.add(x);
  }
  void merge(const ColumnMiddle& next) {
    moments.merge(next.moments);
    sketch.merge(next.sketch);
  }
  int64_t count() const { return median ? sketch.count() : moments.count; }
  double middle() const { return median ? sketch.at((sketch.count() - 1) / 2) : moments.mean; }
};

class Fill : public ColumnTransform {
 public:
  explicit Fill(const TransformOptions& options) : Fill(TransformSettings(options)) {}

  std::vector<std::string> makes() const override {
    std::vector<std::string> names = to();
    if (flag_)
      for (const std::string& name : to()) names.push_back(flag_name(name));
    return names;
  }
  std::vector<BlockField> output(const std::vector<BlockField>& input) const override {
    std::vector<BlockField> fields = ColumnTransform::output(input);
    if (flag_)
      for (const std::string& name : to())
        put_field(fields, {.name = flag_name(name), .type = ValueType::kF64, .scaled = true});
    return fields;
  }
  void apply(const BlockPlace& place, ColumnBlock& block) const override {
    std::vector<BlockColumn> flags;
    for (size_t i = 0; flag_ && i < from().size(); ++i) {
      const auto records = static_cast<size_t>(block.records);
      std::vector<double> marks(records);
      for_each_missing(block.column(from()[i]), records, [&](size_t r) { marks[r] = 1; });
      flags.push_back({flag_name(to()[i]), 1, std::move(marks)});
    }
    ColumnTransform::apply(place, block);
    for (BlockColumn& flag : flags) put_column(block, std::move(flag));
  }

  std::unique_ptr<TransformFit> begin_fit() const override {
    if (value_) return nullptr;
    ColumnMiddle empty;
    empty.median = median_;
    return std::make_unique<ColumnsFit<ColumnMiddle>>(from(), empty);
  }
  void finish_fit(const TransformFit& fit) override {
    const auto& columns = dynamic_cast<const ColumnsFit<ColumnMiddle>&>(fit);
    constants_.clear();
    for (size_t i = 0; i < from().size(); ++i) {
      if (columns.statistic(i).count() == 0)
        throw UserError(
            "transform fill: column '{}' has no value in the training records; give one with value",
            from()[i]);
      constants_.push_back({columns.statistic(i).middle()});
    }
  }
  std::string fitted() const override { return value_ ? std::string() : fitted_lines(from(), constants_); }
  void set_fitted(std::string_view text) override { constants_ = read_fitted_lines(text, from(), 1); }

 protected:
  BlockField made(size_t, const BlockField& from) const override {
    if (number_) return {.name = {}, .type = ValueType::kF64, .scaled = from.scaled};
    if (from.type != ValueType::kBytes)
      throw UserError("transform fill: column '{}' holds numbers ({}), and '{}' is none", from.name,
                      name_of(from.type), *value_);
    return {{}, ValueType::kBytes, 1};
  }

  void make(size_t i, const BlockColumn& from, ColumnBlock& block, BlockColumn& to) const override {
    const auto records = static_cast<size_t>(block.records);
    if (number_) {
      LOCKSTEP_CHECK(i < constants_.size(), "fill is used before it is fitted");
      std::vector<double> numbers;
      numbers_of(from, numbers);
      for (double& x : numbers)
        if (std::isnan(x)) x = constants_[i][0];
      to.values = std::move(numbers);
      return;
    }
    auto kept = std::make_shared<std::string>(*value_);
    std::vector<std::string_view> texts = from.as<std::string_view>();
    for_each_missing(from, records, [&](size_t r) { texts[r] = *kept; });
    to.missing_texts = &no_missing_texts();  // also where the value looks like one of them
    block.keep.push_back(std::move(kept));
    to.values = std::move(texts);
  }

 private:
  explicit Fill(TransformSettings settings)
      : ColumnTransform(settings, 1, Wanted::kNumber), value_(settings.optional_word("value")) {
    const auto method = settings.optional_word("method");
    flag_ = settings.yes("flag");
    settings.finish();
    if (value_.has_value() == method.has_value())
      throw UserError("transform fill needs value or method, one of the two");
    if (method && *method != "mean" && *method != "median")
      throw UserError("transform fill: method is '{}'; write mean or median", *method);
    median_ = method == "median";
    if (!value_) return;
    const auto number = parse_number(*value_);
    number_ = number.has_value();
    if (number_)
      constants_.assign(from().size(), {*number});
    else
      want(Wanted::kText);
  }

  static std::string flag_name(const std::string& name) { return name + "_missing"; }

  template <typename Take>
  static void for_each_missing(const BlockColumn& column, size_t records, const Take& take) {
    if (column.type() == ValueType::kBytes) {
      for_each_category(column, records, [&](size_t r, std::string_view text) {
        if (text.empty()) take(r);
      });
      return;
    }
    std::vector<double> numbers;
    numbers_of(column, numbers);
    for (size_t r = 0; r < records; ++r)
      if (std::isnan(numbers[r])) take(r);
  }

  std::optional<std::string> value_;
  bool number_ = true, median_ = false, flag_ = false;
  FittedNumbers constants_;  // of each column, where it holds numbers
};

constexpr TransformSetting kSettings[] = {
    kColumnsSetting,
    kAsSetting,
    {"value", "what a missing value becomes; columns are numbers where this is one, otherwise text",
     "`method`"},
    {"method", "`mean` or `median` of the training records", "`value`"},
    {"flag", "`yes`: for each column also NAME`_missing`, 1 where it was missing and otherwise 0", "no"},
};

}  // namespace

constinit const TransformEntry kFillTransform{
    "fill",
    "A value in place of what is missing. Without it the encoding fills numbers with the column's mean and "
    "adds a "
    "column that says so, and categories have a row for missing ones.",
    "{name: fill, columns: [previous_amount], method: median, flag: yes}", kSettings,
    [](const TransformOptions& options) -> std::unique_ptr<Transform> {
      return std::make_unique<Fill>(options);
    }};

}  // namespace lockstep
