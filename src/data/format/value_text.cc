#include "data/format/value_text.h"

#include <charconv>
#include <cmath>

#include "data/format/missing_texts.h"

namespace lockstep {
namespace {

size_t sequence_length(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead >= 0xc2 && lead <= 0xdf) return 2;
  if (lead >= 0xe0 && lead <= 0xef) return 3;
  if (lead >= 0xf0 && lead <= 0xf4) return 4;
  return 0;
}

}  // namespace

bool is_missing(std::string_view field) { return usual_missing_texts().has(field); }

std::optional<double> parse_number(std::string_view field) {
  while (!field.empty() && field.front() == ' ') field.remove_prefix(1);
  while (!field.empty() && field.back() == ' ') field.remove_suffix(1);
  if (field.size() > 1 && field[0] == '+' && field[1] != '-') field.remove_prefix(1);
  double value = 0;
  const auto [end, failure] = std::from_chars(field.data(), field.data() + field.size(), value);
  if (failure != std::errc() || end != field.data() + field.size() || !(std::fabs(value) <= kLargestNumber))
    return {};
  return value;
}

std::optional<int64_t> integer_of(std::string_view field) {
  if (field.size() > 1 && field[0] == '+' && field[1] != '-') field.remove_prefix(1);
  int64_t value = 0;
  const auto [end, failure] = std::from_chars(field.data(), field.data() + field.size(), value);
  if (failure != std::errc() || end != field.data() + field.size()) return {};
  return value;
}

bool is_comma_number(std::string_view field) {
  if (field.find(',') == std::string_view::npos) return false;
  std::string without(field);
  std::erase(without, ',');
  return parse_number(without).has_value();
}

std::string not_a_number(std::string_view field, bool whole) {
  constexpr const char* kText =
      "list it under data.missing_values if it means a missing value, or name the column under "
      "columns.categorical";
  constexpr const char* kCommas = "write a point before the decimals, and no other separators";
  return fmt::format("which is not a {}; {}", whole ? "whole number" : "number (of at most 1e30)",
                     is_comma_number(field) ? kCommas : kText);
}

bool is_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const size_t length = sequence_length(lead);
    if (length == 0 || length > text.size() - i) return false;
    for (size_t k = 1; k < length; ++k)
      if ((static_cast<unsigned char>(text[i + k]) & 0xc0) != 0x80) return false;
    if (length > 2) {
      // Longer than need be, surrogates, and beyond the last character.
      const auto second = static_cast<unsigned char>(text[i + 1]);
      if ((lead == 0xe0 && second < 0xa0) || (lead == 0xed && second > 0x9f) ||
          (lead == 0xf0 && second < 0x90) || (lead == 0xf4 && second > 0x8f))
        return false;
    }
    i += length;
  }
  return true;
}

}  // namespace lockstep
