// A set of byte strings with a value each, walked byte by byte: a double array (Aoe, 1989), so that a step is
// one look-up.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep::tok {

class Trie {
 public:
  static constexpr int32_t kNone = -1;
  static constexpr uint32_t kRoot = 0;

  Trie() : Trie(std::vector<std::pair<std::string_view, int32_t>>()) {}
  // Of equal strings the last counts; an empty string is left out.
  explicit Trie(std::vector<std::pair<std::string_view, int32_t>> strings);

  // The node after `byte`; false if no string goes on with it.
  bool step(uint32_t& node, unsigned char byte) const {
    const uint32_t next = nodes_[node].base + byte;
    if (nodes_[next].parent != node) return false;
    node = next;
    return true;
  }
  // Of the string that ends at the node, or kNone.
  int32_t value(uint32_t node) const { return nodes_[node].value; }

  bool starts_with(unsigned char byte) const { return nodes_[nodes_[kRoot].base + byte].parent == kRoot; }
  // The longest string that `text` starts with: its length and value, length 0 for none.
  std::pair<size_t, int32_t> longest(std::string_view text) const;

 private:
  static constexpr uint32_t kFree = ~0u;
  struct Node {
    uint32_t base = 0;
    uint32_t parent = kFree;
    int32_t value = kNone;
  };
  struct Range {
    uint32_t node;
    size_t begin, end, depth;
  };
  uint32_t place(std::span<const unsigned char> labels);

  std::vector<Node> nodes_;
  size_t first_free_ = 1;
};

}  // namespace lockstep::tok
