// Byte-pair merging: of all neighbouring pairs that merge, the one with the lowest rank, the leftmost of
// equals, until none is left. In near-linear time: llama-2 and gemma hand over whole texts as one word.
#pragma once
#include <algorithm>
#include <cstdint>

#include "tokenizer/hash.h"
#include "tokenizer/model.h"

namespace lockstep::tok {

// Merges scratch.symbols in place; where `starts` is wanted, scratch.starts keeps the offsets of what is
// left. `found` is called with every pair that merges, left, right and what they merge into, as it comes up.
template <bool kStarts, typename Found>
void merge_symbols(const PairMerges& merges, ModelScratch& scratch, const Found& found);

// ---- how
// ---------------------------------------------------------------------------------------------------------------

inline constexpr uint64_t kNoMerge = ~uint64_t{0};

// A look through all pairs for each merge is faster than a heap as long as they are few.
inline constexpr size_t kFewSymbols = 96;

template <bool kStarts, typename Found>
void merge_few(const PairMerges& merges, ModelScratch& scratch, const Found& found) {
  uint32_t* symbols = scratch.symbols.data();
  size_t count = scratch.symbols.size();
  uint64_t pairs[kFewSymbols];
  const auto pair_at = [&](size_t i) {
    const uint64_t merge = merges.find(symbols[i], symbols[i + 1]);
    if (merge != kNoMerge) found(symbols[i], symbols[i + 1], static_cast<uint32_t>(merge));
    return merge;
  };
  for (size_t i = 0; i + 1 < count; ++i) pairs[i] = pair_at(i);
  while (count > 1) {
    size_t best = 0;
    uint64_t best_rank = pairs[0] >> 32;
    for (size_t i = 1; i + 1 < count; ++i) {
      const uint64_t rank = pairs[i] >> 32;
      best = rank < best_rank ? i : best;
      best_rank = rank < best_rank ? rank : best_rank;
    }
    if (pairs[best] == kNoMerge) break;
    symbols[best] = static_cast<uint32_t>(pairs[best]);
    --count;
    for (size_t i = best + 1; i < count; ++i) {
      symbols[i] = symbols[i + 1];
      if constexpr (kStarts) scratch.starts[i] = scratch.starts[i + 1];
    }
    for (size_t i = best; i + 1 < count; ++i) pairs[i] = pairs[i + 1];
    if (best > 0) pairs[best - 1] = pair_at(best - 1);
    if (best + 1 < count) pairs[best] = pair_at(best);
  }
  scratch.symbols.resize(count);
  if constexpr (kStarts) scratch.starts.resize(count);
}

template <bool kStarts, typename Found>
void merge_many(const PairMerges& merges, ModelScratch& scratch, const Found& found) {
  std::vector<uint32_t>& symbols = scratch.symbols;
  std::vector<uint64_t>& pairs = scratch.pairs;
  std::vector<uint32_t>& previous = scratch.previous;
  std::vector<uint32_t>& next = scratch.next;
  std::vector<uint64_t>& heap = scratch.heap;
  const auto count = static_cast<uint32_t>(symbols.size());
  constexpr uint32_t kEnd = ~0u;
  pairs.assign(count, kNoMerge);
  previous.resize(count);
  next.resize(count);
  heap.clear();
  const auto later = [](uint64_t a, uint64_t b) { return a > b; };
  const auto look = [&](uint32_t i) {
    pairs[i] = merges.find(symbols[i], symbols[next[i]]);
    if (pairs[i] == kNoMerge) return false;
    found(symbols[i], symbols[next[i]], static_cast<uint32_t>(pairs[i]));
    heap.push_back((pairs[i] >> 32) << 32 | i);
    return true;
  };
  for (uint32_t i = 0; i < count; ++i) {
    previous[i] = i - 1;  // kEnd for the first
    next[i] = i + 1 < count ? i + 1 : kEnd;
  }
  for (uint32_t i = 0; i + 1 < count; ++i) look(i);
  std::make_heap(heap.begin(), heap.end(), later);
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), later);
    const uint64_t top = heap.back();
    heap.pop_back();
    const auto i = static_cast<uint32_t>(top);
    // The pair there has changed since, or is gone.
    if (pairs[i] == kNoMerge || pairs[i] >> 32 != top >> 32) continue;
    const uint32_t right = next[i];
    symbols[i] = static_cast<uint32_t>(pairs[i]);
    next[i] = next[right];
    next[right] = right;  // gone
    pairs[right] = pairs[i] = kNoMerge;
    if (next[i] != kEnd) previous[next[i]] = i;
    if (previous[i] != kEnd && look(previous[i])) std::push_heap(heap.begin(), heap.end(), later);
    if (next[i] != kEnd && look(i)) std::push_heap(heap.begin(), heap.end(), later);
  }
  uint32_t kept = 0;
  for (uint32_t i = 0; i != kEnd; i = next[i]) {
    symbols[kept] = symbols[i];
    if constexpr (kStarts) scratch.starts[kept] = scratch.starts[i];
    ++kept;
  }
  symbols.resize(kept);
  if constexpr (kStarts) scratch.starts.resize(kept);
}

template <bool kStarts, typename Found>
void merge_symbols(const PairMerges& merges, ModelScratch& scratch, const Found& found) {
  if (scratch.symbols.size() < 2) return;
  if (scratch.symbols.size() <= kFewSymbols) {
    merge_few<kStarts>(merges, scratch, found);
  } else {
    merge_many<kStarts>(merges, scratch, found);
  }
}

}  // namespace lockstep::tok
