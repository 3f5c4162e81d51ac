#include "data/order/read_order.h"

#include <algorithm>
#include <atomic>
#include <cmath>
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

namespace {

constexpr uint64_t kMixtureStream = 0x6d69780000000000;  // "mix": apart from the epochs of an order
constexpr uint64_t kUnit = uint64_t{1} << 32;
constexpr size_t kMostSources = 64;

std::vector<uint64_t> parts_of(const std::vector<double>& weights) {
  double sum = 0;
  for (const double weight : weights) {
    if (!(weight >= 0 && std::isfinite(weight)))
      throw UserError("a source of the mixture has the weight {}; use 0 or more", weight);
    sum += weight;
  }
  if (!(sum > 0)) throw UserError("all sources of the mixture have the weight 0; give one of them more");
  std::vector<uint64_t> parts;
  for (const double weight : weights)
    parts.push_back(static_cast<uint64_t>(weight / sum * static_cast<double>(kUnit)));
  return parts;
}

uint64_t next_id() {
  static std::atomic<uint64_t> last = 0;
  return ++last;
}

}  // namespace

Mixture::Mixture(uint64_t seed, std::vector<MixtureShares> shares)
    : id_(next_id()), keys_(seed, kMixtureStream) {
  if (shares.empty() || shares[0].position != 0)
    throw UserError("the shares of a mixture must begin at position 0");
  const size_t sources = shares[0].weights.size();
  if (sources < 1 || sources > kMostSources)
    throw UserError("a mixture of {} sources; use 1 to {}", sources, kMostSources);
  for (const MixtureShares& entry : shares) {
    if (entry.weights.size() != sources)
      throw UserError("{} weights at position {} for {} sources", entry.weights.size(), entry.position,
                      sources);
    Segment segment{entry.position, parts_of(entry.weights), 0, std::vector<int64_t>(sources)};
    segment.largest = static_cast<size_t>(std::max_element(segment.parts.begin(), segment.parts.end()) -
                                          segment.parts.begin());
    if (!segments_.empty()) {
      const Segment& last = segments_.back();
      const int64_t length = segment.first - last.first;
      if (length <= 0)
        throw UserError("the shares at position {} do not come after those before", entry.position);
      segment.before = counts(last, length / kStretch);
      for (size_t i = 0; i < sources; ++i) segment.before[i] += last.before[i];
      std::vector<Draw> partial(static_cast<size_t>(length % kStretch));
      walk(last, length - length % kStretch, length % kStretch, partial.data());
      for (const Draw& draw : partial) ++segment.before[static_cast<size_t>(draw.source)];
    }
    segments_.push_back(std::move(segment));
  }
}

std::vector<int64_t> Mixture::counts(const Segment& segment, int64_t stretches) {
  std::vector<int64_t> counts(segment.parts.size());
  const int64_t positions = stretches * kStretch;
  int64_t others = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    if (i == segment.largest) continue;
    counts[i] = static_cast<int64_t>(static_cast<unsigned __int128>(positions) * segment.parts[i] / kUnit);
    others += counts[i];
  }
  counts[segment.largest] = positions - others;
  return counts;
}

// Positions [from, from + count) of the segment, which lie in one stretch. The slots of a stretch are
// permuted; source i has as many of the permuted slots as it has records, and gives them in order of the
// slots themselves.
void Mixture::walk(const Segment& segment, int64_t from, int64_t count, Draw* out) const {
  if (count == 0) return;
  const int64_t stretch = from / kStretch;
  std::vector<int64_t> next = counts(segment, stretch);
  std::vector<int64_t> ends = counts(segment, stretch + 1);
  int64_t end = 0;
  for (size_t i = 0; i < ends.size(); ++i) {
    end += ends[i] - next[i];
    next[i] += segment.before[i];
    ends[i] = end;
  }
  Numbers mixed, sizes, tweaks;
  sizes.at.fill(kStretch);
  tweaks.at.fill(mix64(static_cast<uint64_t>(segment.first + from - from % kStretch)));
  for (int64_t slot = 0; slot < from % kStretch + count; ++slot) {
    const size_t k = static_cast<size_t>(slot) % Numbers::kMost;
    if (k == 0) {
      std::iota(mixed.at.begin(), mixed.at.end(), static_cast<uint64_t>(slot));
      if (has_eight())
        keys_.replace<Eight>(mixed, Numbers::kMost, sizes, tweaks);
      else
        keys_.replace<uint64_t>(mixed, Numbers::kMost, sizes, tweaks);
    }
    const auto source = static_cast<size_t>(
        std::upper_bound(ends.begin(), ends.end(), static_cast<int64_t>(mixed.at[k])) - ends.begin());
    const int64_t position = next[source]++;
    if (slot >= from % kStretch) *out++ = {static_cast<int32_t>(source), position};
  }
}

std::span<const Mixture::Draw> Mixture::stretch_of(const Segment& segment, int64_t stretch) const {
  struct Remembered {
    uint64_t id = 0;  // of no mixture
    int64_t segment = 0, stretch = 0;
    std::vector<Draw> draws;
  };
  thread_local Remembered last;
  if (last.id != id_ || last.segment != segment.first || last.stretch != stretch) {
    last.draws.resize(static_cast<size_t>(kStretch));
    walk(segment, stretch * kStretch, kStretch, last.draws.data());
    last.id = id_;
    last.segment = segment.first;
    last.stretch = stretch;
  }
  return last.draws;
}

Mixture::Draw Mixture::at(int64_t position) const {
  Draw draw;
  draws(position, {&draw, 1});
  return draw;
}

void Mixture::draws(int64_t first, std::span<Draw> out) const {
  size_t done = 0;
  while (done < out.size()) {
    const int64_t position = first + static_cast<int64_t>(done);
    auto segment = std::upper_bound(segments_.begin(), segments_.end(), position,
                                    [](int64_t at, const Segment& entry) { return at < entry.first; });
    const int64_t segment_end = segment == segments_.end() ? INT64_MAX : segment->first;
    --segment;
    const int64_t from = position - segment->first;
    const int64_t count = std::min(
        {static_cast<int64_t>(out.size() - done), kStretch - from % kStretch, segment_end - position});
    const auto draws = stretch_of(*segment, from / kStretch)
                           .subspan(static_cast<size_t>(from % kStretch), static_cast<size_t>(count));
    std::copy(draws.begin(), draws.end(), out.begin() + static_cast<int64_t>(done));
    done += static_cast<size_t>(count);
  }
}

}  // namespace lockstep
