// Values as text that gives the same value when it is read again: the shortest decimal for that, with a point
// or an exponent where the value is no whole number by type, so that a reader finds the type again too.
#pragma once
#include <fmt/format.h>

#include <cmath>
#include <concepts>
#include <string>
#include <string_view>

#include "base/error.h"

namespace lockstep {

// Throws UserError for a number that no reader of tables takes.
template <std::floating_point T>
void check_number(T value, std::string_view format, std::string_view column) {
  constexpr double kLargest = 1e30;
  if (std::fabs(static_cast<double>(value)) > kLargest)
    throw UserError("{} cannot hold {} in column '{}': numbers are at most 1e30", format, value, column);
}

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

}  // namespace lockstep
