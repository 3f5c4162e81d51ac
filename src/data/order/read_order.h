// ReadOrder: which record stands at a position of a run, for one source or for several that are mixed.
//
// Mixed sources are consecutive parts of the records, each read in an order of its own, epoch after epoch;
// a Mixture says which part a position draws from.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "data/order/order.h"
#include "data/order/permutation.h"

namespace lockstep {

// Mixture: which of several sources a position of a run draws from, and how many records that source has
// given before, as a pure function of (seed, shares, position).
//
// Positions are dealt out in stretches of kStretch. After any number of whole stretches every source has
// given its share of the positions, to within one record (the largest source: to within one for each other
// source); inside a stretch the sources are mixed at random. A source's records come in its own order,
// without a gap or a repeat, epoch after epoch. Shares may change at given positions; nothing is stored for
// that but the counts at each change.

// From `position` on, source i has weights[i] / sum of weights of the positions.
struct MixtureShares {
  int64_t position = 0;
  std::vector<double> weights;
};

class Mixture {
 public:
  static constexpr int64_t kStretch = 4096;

  struct Draw {
    int32_t source = 0;
    int64_t position = 0;  // of that source's own order
    bool operator==(const Draw&) const = default;
  };

  // Throws UserError unless the first shares begin at position 0, positions rise, every entry has as many
  // weights, they are not negative and not all 0, and there are at most 64 sources.
  Mixture(uint64_t seed, std::vector<MixtureShares> shares);

  int64_t sources() const { return static_cast<int64_t>(segments_[0].before.size()); }
  Draw at(int64_t position) const;
  // out[i] = at(first + i). A thread works a stretch out as a whole and remembers the last one: who asks for
  // neighbouring positions in small pieces pays for it once.
  void draws(int64_t first, std::span<Draw> out) const;

 private:
  struct Segment {
    int64_t first = 0;
    std::vector<uint64_t> parts;  // shares in units of 2^-32
    size_t largest = 0;           // takes what rounding leaves
    std::vector<int64_t> before;  // records of each source before `first`
  };

  // Records of each source in the first `stretches` of a segment.
  static std::vector<int64_t> counts(const Segment& segment, int64_t stretches);
  void walk(const Segment& segment, int64_t from, int64_t count, Draw* out) const;
  // The draws of a whole stretch of a segment.
  std::span<const Draw> stretch_of(const Segment& segment, int64_t stretch) const;

  // The same for copies, another for every other mixture: whose stretch a thread remembers.
  uint64_t id_;
  Feistel keys_;
  std::vector<Segment> segments_;
};

class ReadOrder {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor): an order is the order of one source
  ReadOrder(const Order& order) : size_(order.size()), orders_{order} {}
  // `parts` are the records of each source, as they follow each other. Throws UserError for a source without
  // records, and for weights that are not as many or none at all.
  ReadOrder(uint64_t seed, const std::vector<int64_t>& parts, const OrderShape& shape, Shuffle shuffle,
            const std::vector<MixtureShares>& shares);

  int64_t size() const { return size_; }
  bool mixed() const { return mixture_.has_value(); }
  // The sources: their first records, and how many they have.
  int64_t parts() const { return static_cast<int64_t>(orders_.size()); }
  int64_t first_of(int64_t part) const { return mixture_ ? firsts_[static_cast<size_t>(part)] : 0; }
  int64_t size_of(int64_t part) const { return orders_[static_cast<size_t>(part)].size(); }
  // The source that a record belongs to.
  int64_t part_of(int64_t record) const;
  // Lanes with blocks of their own; 1 where there are none.
  int64_t lanes() const { return mixture_ ? 1 : orders_[0].lanes(); }
  // Replaces positions by their records; those of mixed sources must follow each other. Epochs are those of
  // the source that a record is of.
  void records_at(std::span<int64_t> positions, std::vector<int64_t>* epochs = nullptr) const;

 private:
  void mixed_records_at(std::span<int64_t> positions, std::span<int64_t> epochs) const;

  int64_t size_;
  std::vector<Order> orders_;
  std::vector<int64_t> firsts_ = {};  // of the parts
  std::optional<Mixture> mixture_ = {};
};

}  // namespace lockstep
