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
  const std::span<int64_t> all_epochs = epochs == nullptr ? std::span<int64_t>() : *epochs;
  if (mixture_)
    mixed_records_at(positions, all_epochs);
  else
    orders_[0].records_at(positions, all_epochs);
}

// Source by source, since an order works many positions out for less than one by one.
void ReadOrder::mixed_records_at(std::span<int64_t> positions, std::span<int64_t> epochs) const {
  if (positions.empty()) return;
  LOCKSTEP_CHECK(positions.back() - positions.front() + 1 == static_cast<int64_t>(positions.size()),
                 "positions of a mixture with gaps");
  thread_local std::vector<Mixture::Draw> draws;
  thread_local std::vector<int64_t> own, own_epochs;
  thread_local std::vector<size_t> places, ends;
  draws.resize(positions.size());
  mixture_->draws(positions.front(), draws);
  ends.assign(orders_.size(), 0);
  for (const Mixture::Draw& draw : draws) ++ends[static_cast<size_t>(draw.source)];
  std::exclusive_scan(ends.begin(), ends.end(), ends.begin(), size_t{0});
  own.resize(positions.size());
  own_epochs.resize(epochs.size());
  places.resize(positions.size());
  for (size_t i = 0; i < draws.size(); ++i) {
    const size_t k = ends[static_cast<size_t>(draws[i].source)]++;
    own[k] = draws[i].position;
    places[k] = i;
  }
  size_t k = 0;
  for (size_t source = 0; source < orders_.size(); ++source) {
    const size_t begin = k;
    const size_t count = ends[source] - begin;
    orders_[source].records_at(std::span(own).subspan(begin, count),
                               epochs.empty() ? epochs : std::span(own_epochs).subspan(begin, count));
    for (; k < ends[source]; ++k) {
      positions[places[k]] = firsts_[source] + own[k];
      if (!epochs.empty()) epochs[places[k]] = own_epochs[k];
    }
  }
}

}  // namespace lockstep
