#include "ops/rope_frequencies.h"

namespace lockstep {
namespace {

double power(double x, int64_t n) {
  double result = 1;
  for (int64_t i = 0; i < n; ++i) result *= x;
  return result;
}

// The n-th root of x >= 1, by halving [1, x] until no double lies between.
double root(double x, int64_t n) {
  double low = 1;
  double high = x;
  for (;;) {
    const double middle = low + (high - low) / 2;
    if (middle <= low || middle >= high) return low;
    (power(middle, n) > x ? high : low) = middle;
  }
}

}  // namespace

std::vector<float> rope_wavelengths(double base, int64_t pairs) {
  std::vector<float> result;
  const double ratio = root(base, pairs);
  for (int64_t i = 0; i < pairs; ++i) result.push_back(static_cast<float>(power(ratio, i)));
  return result;
}

std::vector<float> rope_frequencies(double base, int64_t pairs) {
  // Rounded before and after the division, as in the implementations that published checkpoints were trained
  // with.
  std::vector<float> result = rope_wavelengths(base, pairs);
  for (float& x : result) x = 1.0f / x;
  return result;
}

std::vector<float> rope_frequencies(const Attributes& attributes, int64_t pairs) {
  const std::vector<double>& given = attributes.numbers("frequencies");
  if (given.empty()) return rope_frequencies(attributes.number("base"), pairs);
  std::vector<float> result;
  for (const double frequency : given) result.push_back(static_cast<float>(frequency));
  return result;
}

}  // namespace lockstep
