#include "data/order/order.h"

#include <algorithm>

#include "base/error.h"

namespace lockstep {

Order::Order(uint64_t seed, const OrderShape& shape, Shuffle shuffle)
    : seed_(seed), shape_(shape), shuffle_(shuffle) {
  if (shape.records < 1) throw UserError("the data has no records; give at least one");
  EpochOrder(seed, 0, shape, shuffle);  // checks the shape
}

int64_t Order::lanes() const {
  const bool laned = shuffle_ == Shuffle::kBlock && shape_.block > 1 && shape_.rows() > 0;
  return laned ? shape_.lanes : 1;
}

int64_t Order::record_at(int64_t position) const {
  int64_t record = 0;
  records(position, {&record, 1});
  return record;
}

void Order::records(int64_t first, std::span<int64_t> out, int64_t stride) const {
  size_t done = 0;
  while (done < out.size()) {
    const int64_t epoch = epoch_of(first + static_cast<int64_t>(done) * stride);
    const size_t begin = done;
    for (; done < out.size(); ++done) {
      out[done] = first + static_cast<int64_t>(done) * stride - epoch * shape_.records;
      if (out[done] >= shape_.records) break;
    }
    this->epoch(epoch).replace(out.subspan(begin, done - begin));
  }
}

void Order::records_at(std::span<int64_t> positions, std::span<int64_t> epochs) const {
  for (size_t at = 0; at < positions.size();) {
    const int64_t epoch = epoch_of(positions[at]);
    const int64_t start = epoch * shape_.records;
    const size_t begin = at;
    for (; at < positions.size() && positions[at] >= start && positions[at] - start < shape_.records; ++at)
      positions[at] -= start;
    this->epoch(epoch).replace(positions.subspan(begin, at - begin));
    if (!epochs.empty()) std::fill_n(epochs.begin() + static_cast<int64_t>(begin), at - begin, epoch);
  }
}

}  // namespace lockstep
