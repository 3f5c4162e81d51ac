#include "fuzz/field.h"

#include <bit>
#include <charconv>
#include <cmath>

#include "base/error.h"
#include "data/csv/csv_check.h"
#include "data/format/value_text.h"
#include "data/transform/civil_time.h"
#include "data/transform/table_encoding.h"
#include "data/transform/transform.h"

namespace lockstep::testing {
namespace {

template <typename T>
std::optional<T> all_of_it(std::string_view text) {
  T value{};
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc() || end != text.data() + text.size()) return {};
  return value;
}

// Spaces around a number are passed over, and a plus.
std::string_view bare(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text.starts_with('+') ? text.substr(1) : text;
}

void check_same(double a, double b, std::string_view text) {
  LOCKSTEP_CHECK(std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b), "{} is {}, not {}", text, a, b);
}

bool check_numbers(std::string_view text) {
  const auto exact = all_of_it<double>(bare(text));
  const auto number = parse_number(text);
  if (number) {
    LOCKSTEP_CHECK(exact && std::fabs(*number) <= 1e30, "{} is read as {}", text, *number);
    check_same(*number, *exact, text);
  }
  if (const auto whole = integer_of(text))
    LOCKSTEP_CHECK(all_of_it<int64_t>(bare(text)) == whole, "{} is not {}", text, *whole);
  return number.has_value();
}

std::string written(const CivilTime& time, std::string_view offset) {
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}{}", time.year, time.month, time.day, time.hour,
                     time.minute, time.second, offset);
}

bool check_time(std::string_view text) {
  const auto seconds = parse_time(text);
  if (!seconds) return false;
  const CivilTime time = civil_time(*seconds);
  LOCKSTEP_CHECK(time.weekday >= 0 && time.weekday < 7 && time.day_of_year >= time.day &&
                     time.day_of_year <= 366 && time.year >= -1 && time.year <= 10000,
                 "{} is day {} of year {}", text, time.day_of_year, time.year);
  if (time.year < 0 || time.year > 9999) return true;  // an offset leads out of what can be written
  const std::string again = written(time, "Z");
  LOCKSTEP_CHECK(parse_time(again) == seconds, "{} is {}, but {} is not", text, *seconds, again);
  LOCKSTEP_CHECK(parse_time(written(time, "-01:30")) == *seconds + 5400, "{} and an offset", again);
  LOCKSTEP_CHECK(parse_time(written(time, "")) == seconds, "{} without its Z", again);
  return true;
}

// What it makes of one field; nothing where it refuses it.
std::optional<ColumnBlock> transformed(const TransformOptions& options, std::string_view text) {
  ColumnBlock block;
  block.reset({{"field", ValueType::kBytes, 1}});
  block.records = 1;
  block.columns[0].as<std::string_view>() = {text};
  try {
    make_transform(options)->apply({}, block);
  } catch (const BadValue& bad) {
    LOCKSTEP_CHECK(bad.row() == 0, "row {} of 1", bad.row());
    return {};
  }
  check_block(block);
  return block;
}

// Every feature; a cyclic one lies on its circle.
void check_time_features(std::string_view text) {
  TransformOptions options{"time_features",
                           {{"column", {"field"}}, {"features", {"hour", "weekday", "month_cyclic"}}}};
  for (const char* unit : {"s", "us"}) {
    options.settings["unit"] = {unit};
    const auto block = transformed(options, text);
    if (!block || block->column("field_hour").is_missing(0)) continue;
    const auto value = [&](std::string_view name) { return block->column(name).as<double>()[0]; };
    const double sine = value("field_month_sin"), cosine = value("field_month_cos");
    LOCKSTEP_CHECK(std::fabs(sine * sine + cosine * cosine - 1) < 1e-12, "{}: {} and {}", text, sine, cosine);
    LOCKSTEP_CHECK(value("field_hour") >= 0 && value("field_hour") <= 23, "{}", text);
    LOCKSTEP_CHECK(value("field_weekday") >= 0 && value("field_weekday") <= 6, "{}", text);
  }
}

// With invalid: missing nothing is refused, and what is not missing is what the strict cast gives.
void check_cast(std::string_view text) {
  for (const char* type : {"i32", "i64", "f32", "f64", "text"}) {
    TransformOptions options{"cast", {{"columns", {"field"}}, {"to", {type}}}};
    const auto strict = transformed(options, text);
    options.settings["invalid"] = {"missing"};
    const auto lenient = transformed(options, text);
    LOCKSTEP_CHECK(lenient.has_value(), "'{}' is refused as {} with invalid: missing", text, type);
    LOCKSTEP_CHECK(strict || lenient->columns[0].is_missing(0), "'{}' as {}", text, type);
    if (strict && !strict->columns[0].is_missing(0))
      LOCKSTEP_CHECK(strict->columns[0].values == lenient->columns[0].values, "'{}' as {}", text, type);
  }
}

}  // namespace

bool check_field(std::string_view text) {
  const bool number = check_numbers(text);
  const bool time = check_time(text);
  check_time_features(text);
  check_cast(text);
  std::string unescaped;
  if (problem_of(text) == nullptr) is_utf8(unquote(text, unescaped));
  return number || time;
}

}  // namespace lockstep::testing
