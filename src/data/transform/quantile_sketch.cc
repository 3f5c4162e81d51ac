#include "data/transform/quantile_sketch.h"

#include <algorithm>
#include <bit>

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

}  // namespace lockstep
