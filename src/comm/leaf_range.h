// A range of leaves of the canonical tree, and which two ranges are siblings in it.
//
// Node (h, i) of the tree over V leaves covers [i 2^h, (i+1) 2^h), cut off at V. A lone child passes through
// unchanged, so that a node is known by what it covers: its range names it, whatever its height.
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>

namespace lockstep {

struct LeafRange {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t size() const { return end - begin; }
  bool operator==(const LeafRange&) const = default;
};

// Whether the node over both ranges is the sum of the two. A left sibling is never cut off.
inline bool are_siblings(LeafRange left, LeafRange right, int64_t leaves) {
  const int64_t size = left.size();
  return left.end == right.begin && std::has_single_bit(static_cast<uint64_t>(size)) &&
         left.begin % (2 * size) == 0 && right.end == std::min(left.begin + 2 * size, leaves);
}

}  // namespace lockstep
