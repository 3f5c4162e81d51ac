// time_features: what a model can learn from of a moment: its hour, its day of the week, and the like, as
// numbers or as points on a circle, where 23 and 0 are neighbours. In UTC: there is no table of time zones.
#include <cmath>

#include "base/error.h"
#include "base/nearest.h"
#include "base/portable_math.h"
#include "data/format/value_text.h"
#include "data/transform/civil_time.h"
#include "data/transform/column_values.h"
#include "data/transform/settings.h"

namespace lockstep {
namespace {

// As far as years of four digits go, with room for offsets.
constexpr double kLatest = 4e11;

struct Feature {
  std::string_view name;
  int64_t (*of)(const CivilTime& time, int64_t seconds);
  int64_t first, period;  // where it begins and after how much it begins again; 0: never
};

constexpr Feature kFeatures[] = {
    {"second", [](const CivilTime& t, int64_t) -> int64_t { return t.second; }, 0, 60},
    {"minute", [](const CivilTime& t, int64_t) -> int64_t { return t.minute; }, 0, 60},
    {"hour", [](const CivilTime& t, int64_t) -> int64_t { return t.hour; }, 0, 24},
    {"weekday", [](const CivilTime& t, int64_t) -> int64_t { return t.weekday; }, 0, 7},
    {"day", [](const CivilTime& t, int64_t) -> int64_t { return t.day; }, 1, 31},
    {"day_of_year", [](const CivilTime& t, int64_t) -> int64_t { return t.day_of_year; }, 1, 366},
    {"month", [](const CivilTime& t, int64_t) -> int64_t { return t.month; }, 1, 12},
    {"year", [](const CivilTime& t, int64_t) { return t.year; }, 0, 0},
    {"epoch", [](const CivilTime&, int64_t seconds) { return seconds; }, 0, 0},
};

constexpr std::string_view kCyclic = "_cyclic";

struct Wish {
  const Feature* feature;
  bool cyclic;
  std::vector<std::string> names;  // one, or those of sine and cosine
};

Wish wish_of(const std::string& column, const std::string& text) {
  std::vector<std::string_view> known;
  std::vector<std::string> cyclic;
  for (const Feature& feature : kFeatures) {
    known.push_back(feature.name);
    if (feature.period > 0) cyclic.push_back(fmt::format("{}{}", feature.name, kCyclic));
  }
  for (const Feature& feature : kFeatures) {
    if (feature.name == text) return {&feature, false, {fmt::format("{}_{}", column, text)}};
    if (feature.period > 0 && fmt::format("{}{}", feature.name, kCyclic) == text)
      return {
          &feature,
          true,
          {fmt::format("{}_{}_sin", column, feature.name), fmt::format("{}_{}_cos", column, feature.name)}};
  }
  known.insert(known.end(), cyclic.begin(), cyclic.end());
  throw UserError("transform time_features has no feature '{}'; {}", text, suggestion(text, known));
}

class TimeFeatures : public Transform {
 public:
  explicit TimeFeatures(const TransformOptions& options) {
    TransformSettings settings(options);
    text_ = settings.text(1);
    column_ = settings.word("column");
    for (const std::string& feature : settings.list("features")) wishes_.push_back(wish_of(column_, feature));
    const std::string unit = settings.choice("unit", {"s", "ms", "us"});
    settings.finish();
    per_second_ = unit == "s" ? 1 : unit == "ms" ? 1e3 : 1e6;
  }

  std::string text() const override { return text_; }
  std::vector<BlockField> reads() const override { return {{column_, ValueType::kBytes, 1}}; }
  std::vector<std::string> makes() const override {
    std::vector<std::string> names;
    for (const Wish& wish : wishes_) names.insert(names.end(), wish.names.begin(), wish.names.end());
    return names;
  }

  std::vector<BlockField> output(const std::vector<BlockField>& input) const override {
    if (input[index_of(input, column_)].width != 1)
      throw UserError("transform time_features: column '{}' holds several values in a record, not one",
                      column_);
    std::vector<BlockField> fields = input;
    for (const Wish& wish : wishes_)
      for (const std::string& name : wish.names)
        put_field(fields, {.name = name, .type = ValueType::kF64, .scaled = wish.cyclic});
    return fields;
  }

  void apply(const BlockPlace&, ColumnBlock& block) const override {
    const auto records = static_cast<size_t>(block.records);
    std::vector<BlockColumn> made;
    for (const std::string& name : makes()) made.push_back({name, 1, std::vector<double>(records)});
    const BlockColumn& moments = block.column(column_);
    const auto take = [&](size_t r, std::optional<int64_t> seconds) {
      if (!seconds) {
        for (BlockColumn& column : made) mark_missing(column, r, records);
        return;
      }
      const CivilTime time = civil_time(*seconds);
      size_t at = 0;
      for (const Wish& wish : wishes_) {
        const int64_t value = wish.feature->of(time, *seconds);
        if (!wish.cyclic) {
          made[at++].as<double>()[r] = static_cast<double>(value);
          continue;
        }
        const auto turn = static_cast<uint64_t>(value - wish.feature->first);
        const SinCos point = portable_sin_cos(
            static_cast<uint32_t>((turn << 32) / static_cast<uint64_t>(wish.feature->period)));
        made[at++].as<double>()[r] = point.sin;
        made[at++].as<double>()[r] = point.cos;
      }
    };
    if (moments.type() == ValueType::kBytes) {
      for_each_category(moments, records,
                        [&](size_t r, std::string_view text) { take(r, seconds_of(r, text)); });
    } else {
      std::vector<double> numbers;
      numbers_of(moments, numbers);
      for (size_t r = 0; r < records; ++r) take(r, seconds_of(r, numbers[r]));
    }
    for (BlockColumn& column : made) put_column(block, std::move(column));
  }

 private:
  std::optional<int64_t> seconds_of(size_t row, std::string_view text) const {
    if (text.empty()) return {};
    if (const auto seconds = parse_time(text)) return seconds;
    if (const auto number = parse_number(text)) return seconds_of(row, *number);
    throw BadValue(
        row, fmt::format("column '{}' has '{}', which is no time; write it as 2025-01-31T08:05:09Z, or as "
                         "a number since 1970",
                         column_, text.substr(0, 40)));
  }
  std::optional<int64_t> seconds_of(size_t row, double number) const {
    if (std::isnan(number)) return {};
    const double seconds = std::floor(number / per_second_);
    if (!(std::fabs(seconds) <= kLatest))
      throw BadValue(row,
                     fmt::format("column '{}' has {}, which is too far from 1970; is its unit another one?",
                                 column_, number));
    return static_cast<int64_t>(seconds);
  }

  std::string text_, column_;
  std::vector<Wish> wishes_;
  double per_second_ = 1;
};

constexpr TransformSetting kSettings[] = {
    {"column",
     "one column: ISO 8601 (`2025-01-31T08:05:09Z`, with an offset, or a date alone) or a number since 1970",
     ""},
    {"features",
     "some of `second`, `minute`, `hour`, `weekday` (Monday is 0), `day`, `day_of_year`, `month`, `year`, "
     "`epoch` "
     "(seconds since 1970); all but the last two also as `hour_cyclic` and so on",
     ""},
    {"unit", "of numbers: `s`, `ms` or `us`", "s"},
};

}  // namespace

constinit const TransformEntry kTimeFeaturesTransform{
    "time_features",
    "Columns COLUMN`_hour` and so on with what a moment is in UTC; a time that names an offset is taken to "
    "UTC first, "
    "one that names none is UTC (there is no table of time zones). `hour_cyclic` makes COLUMN`_hour_sin` and "
    "COLUMN`_hour_cos`, a point on the circle of 24 hours. Missing times have missing features.",
    "{name: time_features, column: time, features: [weekday, hour_cyclic]}", kSettings,
    [](const TransformOptions& options) -> std::unique_ptr<Transform> {
      return std::make_unique<TimeFeatures>(options);
    }};

}  // namespace lockstep
