// Mixture: which of several sources a position of a run draws from, and how many records that source has
// given before, as a pure function of (seed, shares, position).
//
// Positions are dealt out in stretches of kStretch. After any number of whole stretches every source has
// given its share of the positions, to within one record (the largest source: to within one for each other
// source); inside a stretch the sources are mixed at random. A source's records come in its own order,
// without a gap or a repeat, epoch after epoch. Shares may change at given positions; nothing is stored for
// that but the counts at each change.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "data/order/permutation.h"

namespace lockstep {

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

}  // namespace lockstep
