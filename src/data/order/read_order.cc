#include "data/order/read_order.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"

namespace lockstep {
namespace {

// Parts must not be read in step with each other.
constexpr uint64_t kPartSeed = 0x9e3779b97f4a7c15;

}  // namespace

ReadOrder::ReadOrder(uint64_t seed, const std::vector<int64_t>& parts, const OrderShape& shape,
                     Shuffle shuffle, const std::vector<MixtureShares>& shares)
    : size_(std::accumulate(parts.begin(), parts.end(), int64_t{0})) {
  for (const MixtureShares& entry : shares)
    if (entry.weights.size() != parts.size())
      throw UserError("{} weights for {} sources; give each source one", entry.weights.size(), parts.size());
  int64_t first = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i] < 1) throw UserError("entry {} of the mixed sources has no records", i);
    OrderShape own = shape;
    own.records = parts[i];
    orders_.emplace_back(seed + i * kPartSeed, own, shuffle);
    firsts_.push_back(first);
    first += parts[i];
  }
  mixture_.emplace(seed, shares);
}

int64_t ReadOrder::part_of(int64_t record) const {
  if (!mixture_) return 0;
  return std::upper_bound(firsts_.begin(), firsts_.end(), record) - firsts_.begin() - 1;
}

void ReadOrder::records_at(std::span<int64_t> positions, std::vector<int64_t>* epochs) const {
  if (epochs != nullptr) epochs->resize(positions.size());
  if (!mixture_) {
    if (epochs != nullptr)
      std::transform(positions.begin(), positions.end(), epochs->begin(),
                     [&](int64_t position) { return orders_[0].epoch_of(position); });
    orders_[0].records_at(positions);
    return;
  }
  if (positions.empty()) return;
  LOCKSTEP_CHECK(positions.back() - positions.front() + 1 == static_cast<int64_t>(positions.size()),
                 "positions of a mixture with gaps");
  thread_local std::vector<Mixture::Draw> draws;
  draws.resize(positions.size());
  mixture_->draws(positions.front(), draws);
  // The keys of an epoch are worked out once for all positions of a source in it.
  struct Open {
    int64_t epoch;
    EpochOrder order;
  };
  std::vector<std::optional<Open>> open(orders_.size());
  for (size_t i = 0; i < positions.size(); ++i) {
    const auto source = static_cast<size_t>(draws[i].source);
    const Order& order = orders_[source];
    const int64_t epoch = order.epoch_of(draws[i].position);
    if (!open[source] || open[source]->epoch != epoch) open[source].emplace(Open{epoch, order.epoch(epoch)});
    positions[i] = firsts_[source] + open[source]->order(draws[i].position - epoch * order.size());
    if (epochs != nullptr) (*epochs)[i] = epoch;
  }
}

}  // namespace lockstep
