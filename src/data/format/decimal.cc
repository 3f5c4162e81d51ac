#include "data/format/decimal.h"

#include <bit>
#include <cstdint>

namespace lockstep {
namespace {

constexpr double kPowers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                              1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
constexpr uint64_t kWholePowers[] = {1,
                                     10,
                                     100,
                                     1000,
                                     10000,
                                     100000,
                                     1000000,
                                     10000000,
                                     100000000,
                                     1000000000,
                                     10000000000,
                                     100000000000,
                                     1000000000000,
                                     10000000000000,
                                     100000000000000,
                                     1000000000000000,
                                     10000000000000000,
                                     100000000000000000,
                                     1000000000000000000,
                                     10000000000000000000U};

// digits / 10^power to the nearest double, ties to even: 64 bits of the quotient and whether anything
// remains say all that rounding to 53 bits needs to know.
double quotient(uint64_t digits, int power) {
  const int shift = std::countl_zero(digits), below = std::countl_zero(kWholePowers[power]);
  const uint64_t above = digits << shift, divisor = kWholePowers[power] << below;
  // The first bit of the quotient is to be set: half as much where it would have 65.
  const bool large = above >= divisor;
  const auto dividend = static_cast<unsigned __int128>(above) << (large ? 63 : 64);
  const auto bits = static_cast<uint64_t>(dividend / divisor);
  const bool rest = static_cast<unsigned __int128>(bits) * divisor != dividend;
  constexpr uint64_t kHalf = 1024;
  uint64_t kept = bits >> 11;
  const uint64_t lost = bits & (2 * kHalf - 1);
  if (lost > kHalf || (lost == kHalf && (rest || (kept & 1) != 0))) ++kept;
  const int exponent = 11 + below - shift - (large ? 63 : 64);
  return static_cast<double>(kept) * std::bit_cast<double>(static_cast<uint64_t>(1023 + exponent) << 52);
}

// What the characters of a number say.
struct Parts {
  uint64_t digits = 0;
  int exponent = 0;
  bool negative = false;
};

bool is_digit(char c) { return static_cast<unsigned char>(c - '0') <= 9; }

std::optional<Parts> parts_of(std::string_view text) {
  constexpr int kMostDigits = 19;  // 10^19 - 1 fits into 64 bits
  const char* at = text.data();
  const char* const end = at + text.size();
  Parts parts;
  if (at != end && *at == '-') {
    parts.negative = true;
    ++at;
  }
  int counted = 0;  // digits from the first that is not 0
  bool any = false;
  const auto take_digits = [&] {
    const char* const from = at;
    for (; at != end && is_digit(*at); ++at) {
      parts.digits = parts.digits * 10 + static_cast<uint64_t>(*at - '0');
      counted += parts.digits != 0 ? 1 : 0;
    }
    any = any || at != from;
    return at - from;
  };
  constexpr size_t kLongest = 64;  // so that no count below overflows
  if (text.size() > kLongest) return {};
  take_digits();
  if (at != end && *at == '.') {
    ++at;
    parts.exponent = -static_cast<int>(take_digits());
  }
  if (!any || counted > kMostDigits) return {};
  if (at != end && (*at == 'e' || *at == 'E')) {
    ++at;
    const bool minus = at != end && *at == '-';
    if (at != end && (*at == '-' || *at == '+')) ++at;
    if (at == end || end - at > 3) return {};
    int exponent = 0;
    for (; at != end && is_digit(*at); ++at) exponent = exponent * 10 + (*at - '0');
    parts.exponent += minus ? -exponent : exponent;
  }
  if (at != end) return {};
  return parts;
}

}  // namespace

std::optional<double> decimal_of(std::string_view text) {
  const auto parts = parts_of(text);
  if (!parts || parts->exponent > 0 || parts->exponent < -22) return {};
  double value = 0;
  if (parts->digits <= uint64_t{1} << 53)
    value = static_cast<double>(parts->digits) / kPowers[-parts->exponent];  // both exact: one rounding
  else if (parts->exponent >= -19)
    value = quotient(parts->digits, -parts->exponent);
  else
    return {};
  return parts->negative ? -value : value;
}

}  // namespace lockstep
