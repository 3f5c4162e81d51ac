#include "job/numbers.h"

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <string>

namespace lockstep {
namespace {

constexpr double kLargestWhole = 9.2e18;

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

bool has_leading_zero(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  return text.size() > 1 && text[0] == '0' && text[1] >= '0' && text[1] <= '9';
}

}  // namespace

std::optional<double> read_number(std::string_view text) {
  constexpr auto kInfinity = std::numeric_limits<double>::infinity();
  for (const std::string_view name : {".nan", ".NaN", ".NAN", "nan", "NaN", "NAN"})
    if (text == name) return std::numeric_limits<double>::quiet_NaN();
  for (const std::string_view name : {".inf", ".Inf", ".INF", "+.inf", "inf", "infinity"})
    if (text == name) return kInfinity;
  for (const std::string_view name : {"-.inf", "-.Inf", "-.INF", "-inf"})
    if (text == name) return -kInfinity;
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  const std::string_view digits = text.starts_with('-') ? text.substr(1) : text;
  if (digits.empty() || !((digits[0] >= '0' && digits[0] <= '9') || digits[0] == '.')) return std::nullopt;
  if (has_leading_zero(text)) return std::nullopt;
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end != text.data() + text.size()) return std::nullopt;
  if (error == std::errc::result_out_of_range) return kInfinity;
  if (error != std::errc()) return std::nullopt;
  return value;
}

std::optional<int64_t> read_whole(std::string_view text) {
  if (has_leading_zero(text)) return std::nullopt;
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size()) return value;
  const std::optional<double> number = read_number(text);
  if (!number || !(std::abs(*number) < kLargestWhole) || *number != std::floor(*number)) return std::nullopt;
  return static_cast<int64_t>(*number);
}

std::optional<StepSpan> read_span(std::string_view text) {
  const auto amount = [&](size_t suffix) {
    return read_number(trimmed(text.substr(0, text.size() - suffix)));
  };
  StepSpan span;
  std::optional<double> value;
  if (text.ends_with('%')) {
    span.unit = StepSpan::Unit::kFraction;
    value = amount(1);
    if (value) *value /= 100;
    if (value && !(*value >= 0 && *value <= 1)) return std::nullopt;
  } else if (text.ends_with("samples")) {
    span.unit = StepSpan::Unit::kSamples;
    value = amount(7);
  } else {
    value = amount(text.ends_with("steps") ? 5 : 0);
  }
  if (!value || !std::isfinite(*value) || *value < 0 || *value > kLargestWhole) return std::nullopt;
  if (span.unit != StepSpan::Unit::kFraction && *value != std::floor(*value)) return std::nullopt;
  span.amount = *value;
  return span;
}

std::optional<int64_t> read_bytes(std::string_view text) {
  struct Unit {
    std::string_view name;
    double bytes;
  };
  constexpr std::array<Unit, 9> kUnits = {{{"KiB", 1024.0},
                                           {"MiB", 1048576.0},
                                           {"GiB", 1073741824.0},
                                           {"TiB", 1099511627776.0},
                                           {"kB", 1e3},
                                           {"MB", 1e6},
                                           {"GB", 1e9},
                                           {"TB", 1e12},
                                           {"", 1}}};
  for (const Unit& unit : kUnits) {
    if (!text.ends_with(unit.name)) continue;
    const auto amount = read_number(trimmed(text.substr(0, text.size() - unit.name.size())));
    if (!amount || !(*amount >= 0) || *amount * unit.bytes > kLargestWhole) return std::nullopt;
    return static_cast<int64_t>(*amount * unit.bytes);
  }
  return std::nullopt;
}

}  // namespace lockstep
