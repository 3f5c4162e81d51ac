#include "data/transform/statistics.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/error.h"

namespace lockstep {
namespace {

// Sign, exponent and 12 bits of the mantissa, in the order of the values.
uint32_t cell_of(double value) {
  const auto bits = std::bit_cast<uint64_t>(value);
  const uint64_t ordered = (bits >> 63) != 0 ? ~bits : bits | (uint64_t{1} << 63);
  return static_cast<uint32_t>(ordered >> 40);
}

}  // namespace

void QuantileSketch::add(double value) {
  value += 0.0;  // -0 is 0
  Cell& cell = cells_[cell_of(value)];
  cell.smallest = cell.count == 0 ? value : std::min(cell.smallest, value);
  ++cell.count;
  ++count_;
}

void QuantileSketch::merge(const QuantileSketch& next) {
  for (const auto& [key, other] : next.cells_) {
    Cell& cell = cells_[key];
    cell.smallest = cell.count == 0 ? other.smallest : std::min(cell.smallest, other.smallest);
    cell.count += other.count;
  }
  count_ += next.count_;
}

double QuantileSketch::at(int64_t rank) const {
  LOCKSTEP_CHECK(rank >= 0 && rank < count_, "rank {} of {} values", rank, count_);
  for (const auto& [key, cell] : cells_) {
    if (rank < cell.count) return cell.smallest;
    rank -= cell.count;
  }
  throw InternalError("cells hold fewer values than were added");
}

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
