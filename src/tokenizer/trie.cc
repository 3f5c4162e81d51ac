#include "tokenizer/trie.h"

#include <algorithm>

namespace lockstep::tok {

// A base at which the slots of all labels are free.
uint32_t Trie::place(std::span<const unsigned char> labels) {
  while (first_free_ < nodes_.size() && nodes_[first_free_].parent != kFree) ++first_free_;
  size_t tried = 0;
  for (size_t slot = first_free_;; ++slot) {
    if (slot >= nodes_.size()) nodes_.resize(slot + 512);
    if (nodes_[slot].parent != kFree || slot < labels[0] + size_t{1}) continue;
    const size_t base = slot - labels[0];
    if (base + 256 > nodes_.size()) nodes_.resize(base + 512);
    const bool fits = std::all_of(labels.begin(), labels.end(),
                                  [&](unsigned char label) { return nodes_[base + label].parent == kFree; });
    if (fits) return static_cast<uint32_t>(base);
    // A stretch that is nearly full is not searched over and over.
    if (++tried == 64) first_free_ = slot;
  }
}

Trie::Trie(std::vector<std::pair<std::string_view, int32_t>> strings) {
  std::erase_if(strings, [](const auto& entry) { return entry.first.empty(); });
  std::stable_sort(strings.begin(), strings.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  nodes_.resize(512);
  nodes_[kRoot] = {1, kFree - 1, kNone};
  std::vector<Range> open = {{kRoot, 0, strings.size(), 0}};
  std::vector<Range> children;
  std::vector<unsigned char> labels;
  while (!open.empty()) {
    const Range range = open.back();
    open.pop_back();
    size_t i = range.begin;
    while (i < range.end && strings[i].first.size() == range.depth)
      nodes_[range.node].value = strings[i++].second;
    if (i == range.end) continue;
    labels.clear();
    children.clear();
    for (; i < range.end; ++i) {
      const auto label = static_cast<unsigned char>(strings[i].first[range.depth]);
      if (labels.empty() || labels.back() != label) {
        labels.push_back(label);
        children.push_back({0, i, i, range.depth + 1});
      }
      children.back().end = i + 1;
    }
    const uint32_t base = place(labels);
    nodes_[range.node].base = base;
    for (size_t c = 0; c < labels.size(); ++c) {
      children[c].node = base + labels[c];
      nodes_[children[c].node].parent = range.node;
    }
    open.insert(open.end(), children.rbegin(), children.rend());
  }
  // Every step may look 255 slots past a base.
  size_t last = 0;
  for (const Node& node : nodes_) last = std::max<size_t>(last, node.base);
  if (last + 256 > nodes_.size()) nodes_.resize(last + 256);
}

std::pair<size_t, int32_t> Trie::longest(std::string_view text) const {
  std::pair<size_t, int32_t> found{0, kNone};
  uint32_t node = kRoot;
  for (size_t i = 0; i < text.size(); ++i) {
    if (!step(node, static_cast<unsigned char>(text[i]))) break;
    if (value(node) != kNone) found = {i + 1, value(node)};
  }
  return found;
}

}  // namespace lockstep::tok
