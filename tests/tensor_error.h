// How far a tensor is from its reference, for tests that allow rounding.
//
// The largest difference of an element, relative to the largest finite magnitude of the reference: relative
// to each element it would say nothing near zero, and relative to at least 1 it would accept anything of a
// tensor of small numbers. An element that is a NaN or an infinity on one side alone is infinitely wrong,
// whatever comes after it.
#pragma once
#include <cstdint>
#include <span>
#include <string>

namespace lockstep::testing {

struct TensorError {
  double relative = 0;
  int64_t where = -1;  // of the worst element; -1: all are equal
  double size =
      0;  // what it is relative to: the reference's largest finite magnitude, or kZeroSize where that is zero
};

// What errors are relative to where the reference is zero throughout: no tolerance below 1 accepts a number
// that f32 can hold without becoming subnormal.
inline constexpr double kZeroSize = 1e-37;

// `least_size` is for sums that cancel: rounding leaves them an error of the size of their terms.
TensorError tensor_error(std::span<const double> got, std::span<const double> want, double least_size = 0);

// Empty when the error is within the tolerance, otherwise a description of the worst element.
std::string compare(std::span<const double> got, std::span<const double> want, double tolerance,
                    double least_size = 0);

}  // namespace lockstep::testing
