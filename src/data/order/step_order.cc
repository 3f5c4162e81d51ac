#include "data/order/step_order.h"

#include <algorithm>

namespace lockstep {
namespace {

// Positions of one epoch.
struct Stretch {
  int64_t first = 0;
  int64_t count = 0;
  int64_t index = 0;  // of the first in its epoch
};

// Data so small that a step reads it more often is in memory; lanes mean nothing there.
constexpr int64_t kMostStretches = 4;

std::vector<Stretch> stretches_of(const ReadOrder& order, int64_t first, int64_t count) {
  std::vector<Stretch> stretches;
  while (count > 0) {
    const int64_t index = first % order.size();
    const int64_t here = std::min(count, order.size() - index);
    stretches.push_back({first, here, index});
    first += here;
    count -= here;
  }
  return stretches;
}

}  // namespace

void StepOrder::positions(int64_t first, int64_t microbatch, std::span<int64_t> out, int64_t row) const {
  const int64_t lanes = order_.lanes();
  int64_t skip = microbatch * microbatch_ + row;
  if (lanes == 1 || samples() > (kMostStretches - 2) * order_.size()) {
    for (size_t i = 0; i < out.size(); ++i) out[i] = first + skip + static_cast<int64_t>(i);
    return;
  }
  const std::vector<Stretch> stretches = stretches_of(order_, first, samples());
  size_t done = 0;
  for (int64_t lane = 0; lane < lanes && done < out.size(); ++lane)
    for (const Stretch& stretch : stretches) {
      const int64_t offset = (lane - stretch.index % lanes + lanes) % lanes;
      const int64_t count = (stretch.count - offset + lanes - 1) / lanes;
      for (int64_t k = skip; k < count && done < out.size(); ++k)
        out[done++] = stretch.first + offset + k * lanes;
      skip = std::max<int64_t>(skip - std::max<int64_t>(count, 0), 0);
    }
}

void StepOrder::records(int64_t first, int64_t microbatch, std::vector<int64_t>& records,
                        std::vector<int64_t>* epochs) const {
  records.resize(static_cast<size_t>(microbatch_));
  this->records(first, microbatch, 0, records, epochs);
}

void StepOrder::records(int64_t first, int64_t microbatch, int64_t row, std::span<int64_t> records,
                        std::vector<int64_t>* epochs) const {
  positions(first, microbatch, records, row);
  order_.records_at(records, epochs);
}

}  // namespace lockstep
