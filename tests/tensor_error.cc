#include "tensor_error.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace lockstep::testing {
namespace {

double difference(double got, double want) {
  if (got == want || (std::isnan(got) && std::isnan(want))) return 0;
  const double error = std::fabs(got - want);
  return std::isfinite(error) ? error : std::numeric_limits<double>::infinity();
}

}  // namespace

TensorError tensor_error(std::span<const double> got, std::span<const double> want, double least_size) {
  TensorError result;
  result.size = least_size;
  for (const double x : want)
    if (std::isfinite(x)) result.size = std::max(result.size, std::fabs(x));
  if (result.size == 0) result.size = kZeroSize;
  if (got.size() != want.size()) {
    result.relative = std::numeric_limits<double>::infinity();
    result.where = static_cast<int64_t>(std::min(got.size(), want.size()));
    return result;
  }
  for (size_t i = 0; i < want.size(); ++i) {
    const double error = difference(got[i], want[i]) / result.size;
    if (error <= result.relative) continue;
    result.relative = error;
    result.where = static_cast<int64_t>(i);
  }
  return result;
}

std::string compare(std::span<const double> got, std::span<const double> want, double tolerance,
                    double least_size) {
  if (got.size() != want.size())
    return fmt::format("{} elements, the reference has {}", got.size(), want.size());
  const TensorError error = tensor_error(got, want, least_size);
  if (error.relative <= tolerance) return "";
  const auto where = static_cast<size_t>(error.where);
  return fmt::format(
      "element {} is {}, the reference says {} (error {:.3g} relative to {:.3g}, allowed {:.3g})", where,
      got[where], want[where], error.relative, error.size, tolerance);
}

}  // namespace lockstep::testing
