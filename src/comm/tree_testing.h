// For the tests of this folder: the canonical tree written down as its definition, and values whose sums
// depend on the order.
#pragma once
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "comm/leaf_split.h"

namespace lockstep::testing {

// The sum over leaves [begin, end) of one element, by the definition: node (height, index) is the sum of its
// two children, and a child beyond the last leaf is not there.
template <typename T, typename Leaf>
T tree_sum(int64_t leaves, const Leaf& leaf, int64_t begin, int64_t size) {
  if (size == 1) return leaf(begin);
  const int64_t half = size / 2;
  const T left = tree_sum<T>(leaves, leaf, begin, half);
  if (begin + half >= leaves) return left;
  return left + tree_sum<T>(leaves, leaf, begin + half, half);
}
template <typename T, typename Leaf>
T tree_root(int64_t leaves, const Leaf& leaf) {
  int64_t size = 1;
  while (size < leaves) size *= 2;
  return tree_sum<T>(leaves, leaf, 0, size);
}

// Element i of a leaf: magnitudes differ widely, so that another order gives other bits.
template <typename T>
T leaf_value(int64_t leaf, int64_t i) {
  const uint64_t bits = (static_cast<uint64_t>(leaf) * 0x9E3779B97F4A7C15U) ^
                        ((static_cast<uint64_t>(i) + 1) * 0xBF58476D1CE4E5B9U);
  const uint64_t mixed = (bits ^ (bits >> 29)) * 0x94D049BB133111EBU;
  const auto whole = static_cast<int64_t>(mixed >> 40) - (1 << 23);
  if constexpr (std::is_integral_v<T>)
    return whole;
  else
    return static_cast<T>(whole) * static_cast<T>(1 << ((mixed >> 8) & 15));
}

// A rank's partial sums, made of its leaves alone.
template <typename T>
std::vector<std::vector<T>> partial_sums(const LeafSplit& split, int rank, int64_t count) {
  std::vector<std::vector<T>> sums;
  for (const LeafRange& subtree : split.partials(rank)) {
    std::vector<T> sum(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i)
      // Subtrees are aligned: the tree over a subtree's own leaves is the part of the whole.
      sum[static_cast<size_t>(i)] =
          tree_root<T>(subtree.size(), [&](int64_t leaf) { return leaf_value<T>(subtree.begin + leaf, i); });
    sums.push_back(std::move(sum));
  }
  return sums;
}

template <typename T>
std::vector<T> expected_root(int64_t leaves, int64_t count) {
  std::vector<T> root(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i)
    root[static_cast<size_t>(i)] = tree_root<T>(leaves, [&](int64_t leaf) { return leaf_value<T>(leaf, i); });
  return root;
}

template <typename T>
bool same_bits(const T* a, const std::vector<T>& b) {
  return std::memcmp(a, b.data(), b.size() * sizeof(T)) == 0;
}

}  // namespace lockstep::testing
