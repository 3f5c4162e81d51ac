#include "data/transform/moments.h"

#include <algorithm>
#include <cmath>

namespace lockstep {

Moments moments_of(std::span<const double> values) {
  Moments m;
  double sum = 0;
  for (const double x : values) {
    if (std::isnan(x)) continue;
    ++m.count;
    sum += x;
    m.smallest = std::min(m.smallest, x);
    m.largest = std::max(m.largest, x);
  }
  if (m.count == 0) return m;
  m.mean = sum / static_cast<double>(m.count);
  for (const double x : values) {
    if (std::isnan(x)) continue;
    const double d = x - m.mean;
    m.second += d * d;
    m.third += d * d * d;
  }
  return m;
}

void Moments::merge(const Moments& next) {
  if (next.count == 0) return;
  if (count == 0) {
    *this = next;
    return;
  }
  const auto a = static_cast<double>(count);
  const auto b = static_cast<double>(next.count);
  const double n = a + b;
  const double d = next.mean - mean;
  third += next.third + d * d * d * (a * b / n) * ((a - b) / n) + 3 * d * (a * next.second - b * second) / n;
  second += next.second + d * d * (a * b / n);
  mean += d * (b / n);
  count += next.count;
  smallest = std::min(smallest, next.smallest);
  largest = std::max(largest, next.largest);
}

double Moments::deviation() const { return count == 0 ? 0 : std::sqrt(second / static_cast<double>(count)); }

double Moments::skewness() const {
  const double s = deviation();
  return s > 0 ? third / static_cast<double>(count) / (s * s * s) : 0;
}

}  // namespace lockstep
