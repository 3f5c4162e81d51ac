// cast: columns in another type. Text that is no number is an error, or missing where that is asked for; so
// is a number that the type cannot hold.
#include <charconv>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "data/format/value_text.h"
#include "data/transform/column_transform.h"
#include "data/transform/column_values.h"

namespace lockstep {
namespace {

constexpr double kTwoTo63 = 9223372036854775808.0;

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// Exact for all of 64 bits, where a double would not be.
bool whole_of(std::string_view text, int64_t& out) {
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), out);
  return failure == std::errc() && end == text.data() + text.size();
}

template <typename T>
bool holds(double number, T& out) {
  if constexpr (std::is_floating_point_v<T>) {
    out = static_cast<T>(number);
    return std::isfinite(out);
  } else {
    const double limit = sizeof(T) == 8 ? kTwoTo63 : 2147483648.0;
    if (number != std::floor(number) || !(number >= -limit && number < limit)) return false;
    out = static_cast<T>(number);
    return true;
  }
}

template <typename T>
bool cast_text(std::string_view text, T& out) {
  text = trimmed(text);
  if constexpr (std::is_same_v<T, int64_t>)
    if (whole_of(text, out)) return true;
  const auto number = parse_number(text);
  return number && holds(*number, out);
}

class Cast : public ColumnTransform {
 public:
  explicit Cast(const TransformOptions& options) : Cast(TransformSettings(options)) {}

 protected:
  BlockField made(size_t, const BlockField&) const override { return {{}, type_, 1}; }

  void make(size_t, const BlockColumn& from, ColumnBlock& block, BlockColumn& to) const override {
    to.missing = from.missing;
    const auto records = static_cast<size_t>(block.records);
    switch (type_) {
      case ValueType::kI32: return to_numbers<int32_t>(from, records, to);
      case ValueType::kI64: return to_numbers<int64_t>(from, records, to);
      case ValueType::kF32: return to_numbers<float>(from, records, to);
      case ValueType::kF64: return to_numbers<double>(from, records, to);
      default: to_text(from, block, to);
    }
  }

 private:
  explicit Cast(TransformSettings settings) : ColumnTransform(settings, 1, Wanted::kText) {
    const std::string to = settings.word("to");
    invalid_is_missing_ = settings.choice("invalid", {"stop", "missing"}) == "missing";
    settings.finish();
    constexpr std::pair<std::string_view, ValueType> kTypes[] = {{"i32", ValueType::kI32},
                                                                 {"i64", ValueType::kI64},
                                                                 {"f32", ValueType::kF32},
                                                                 {"f64", ValueType::kF64},
                                                                 {"text", ValueType::kBytes}};
    for (const auto& [name, type] : kTypes)
      if (name == to) {
        type_ = type;
        return;
      }
    throw UserError("transform cast: to is '{}'; write i32, i64, f32, f64 or text", to);
  }

  template <typename T>
  void to_numbers(const BlockColumn& from, size_t records, BlockColumn& to) const {
    std::vector<T> numbers(records);
    const MissingTexts& missing = missing_texts(from);
    const auto refuse = [&](size_t r, std::string_view what) {
      if (!invalid_is_missing_)
        throw BadValue(
            r, fmt::format("column '{}' has '{}', which is not {}; with invalid: missing it "
                           "counts as missing",
                           from.name, what.substr(0, 40),
                           std::is_integral_v<T> ? "a whole number that fits" : "a number that fits"));
      numbers[r] = 0;
      mark_missing(to, r, records);
    };
    std::visit(
        [&](const auto& values) {
          using From = typename std::decay_t<decltype(values)>::value_type;
          for (size_t r = 0; r < records; ++r) {
            if (from.is_missing(r)) continue;
            if constexpr (std::is_same_v<From, std::string_view>) {
              if (missing.has_for_number(values[r]))
                mark_missing(to, r, records);
              else if (!cast_text(values[r], numbers[r]))
                refuse(r, values[r]);
            } else if constexpr (std::is_same_v<From, T>) {
              numbers[r] = values[r];
            } else if (!holds(static_cast<double>(values[r]), numbers[r])) {
              refuse(r, fmt::format("{}", values[r]));
            }
          }
        },
        from.values);
    to.values = std::move(numbers);
  }

  static void to_text(const BlockColumn& from, ColumnBlock& block, BlockColumn& to) {
    const auto records = static_cast<size_t>(block.records);
    auto kept = std::make_shared<std::vector<std::string>>(records);
    std::vector<std::string_view> texts(records);
    for_each_text(from, records, [&](size_t r, std::string_view text) { texts[r] = (*kept)[r] = text; });
    block.keep.push_back(std::move(kept));
    to.values = std::move(texts);
  }

  ValueType type_ = ValueType::kF64;
  bool invalid_is_missing_ = false;
};

constexpr TransformSetting kSettings[] = {
    kColumnsSetting,
    kAsSetting,
    {"to", "`i32`, `i64`, `f32`, `f64` or `text`", ""},
    {"invalid",
     "what becomes of a value that the type cannot hold: `stop` (an error that names file and line) or "
     "`missing`",
     "stop"},
};

}  // namespace

constinit const TransformEntry kCastTransform{
    "cast",
    "Another type. Numbers made to text are categories, text made to numbers is numeric. Whole numbers are "
    "never "
    "rounded: 2.5 is none.",
    "{name: cast, columns: [known_merchant], to: text}", kSettings,
    [](const TransformOptions& options) -> std::unique_ptr<Transform> {
      return std::make_unique<Cast>(options);
    }};

}  // namespace lockstep
