// Values as text: what texts of tables hold, and text that gives the same value when it is read again.
#pragma once
#include <fmt/format.h>

#include <cmath>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace lockstep {

// Numbers of tables are at most this large: far beyond any measurement, and its cube summed over any table
// stays finite.
inline constexpr double kLargestNumber = 1e30;

// Whether it is one of the usual texts for a missing value (data/format/missing_texts.h).
bool is_missing(std::string_view field);
// Nothing when the field is not a number of at most kLargestNumber in magnitude. Surrounding spaces and a
// leading + are allowed.
std::optional<double> parse_number(std::string_view field);
std::optional<int64_t> integer_of(std::string_view field);
// Whether it is a number but for its commas: 1,5 or 1,234.5.
bool is_comma_number(std::string_view field);
// "which is not a number (of at most 1e30)", and what to do about it.
std::string not_a_number(std::string_view field, bool whole = false);
bool is_utf8(std::string_view text);

// Throws UserError for a number that no reader of tables takes.
template <std::floating_point T>
void check_number(T value, std::string_view format, std::string_view column) {
  if (std::fabs(static_cast<double>(value)) > kLargestNumber)
    throw UserError("{} cannot hold {} in column '{}': numbers are at most 1e30", format, value, column);
}

// The shortest decimal for the value, with a point or an exponent where it is no whole number by type, so
// that a reader finds the type again too.
template <std::integral T>
void append_number(T value, std::string& out) {
  fmt::format_to(std::back_inserter(out), "{}", value);
}

// A float is written as the double of the same value: readers that parse doubles then round nothing.
template <std::floating_point T>
void append_number(T value, std::string& out) {
  const size_t before = out.size();
  fmt::format_to(std::back_inserter(out), "{}", static_cast<double>(value));
  if (std::isfinite(value) && out.find_first_of(".e", before) == std::string::npos) out += ".0";
}

// A number that is used as text: a category, or the key of an entity. The one that files of text have for it,
// so that a column means the same in every format: 3.0 of a table with types is what CSV and JSONL write as
// 3.0, and no whole number. A float has its own shortest digits (0.1), not those of a double.
template <std::integral T>
std::string category_text(T value) {
  return fmt::format("{}", value);
}
template <std::floating_point T>
std::string category_text(T value) {
  std::string text = fmt::format("{}", value);
  if (std::isfinite(value) && text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}
inline std::string category_text(std::string_view value) { return std::string(value); }

}  // namespace lockstep
