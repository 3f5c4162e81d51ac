#include "tokenizer/splitting.h"

#include <algorithm>

namespace lockstep::tok {
namespace {

struct Part {
  TextRange range;
  bool delimiter;
};

std::vector<Part> parts_of(TextRange word, std::span<const TextRange> matches, bool invert) {
  std::vector<Part> parts;
  uint32_t at = word.begin;
  for (const TextRange match : matches) {
    if (match.begin != at) parts.push_back({{at, match.begin}, invert});
    parts.push_back({match, !invert});
    at = match.end;
  }
  if (at != word.end) parts.push_back({{at, word.end}, invert});
  return parts;
}

}  // namespace

SplitBehaviour read_behaviour(JsonPart& part, std::string_view key) {
  static constexpr std::string_view kKnown[] = {"Removed", "Isolated", "MergedWithPrevious", "MergedWithNext",
                                                "Contiguous"};
  const std::string name = part.choice(key, kKnown);
  return static_cast<SplitBehaviour>(std::find(std::begin(kKnown), std::end(kKnown), name) -
                                     std::begin(kKnown));
}

void split(TextRange word, std::span<const TextRange> matches, bool invert, SplitBehaviour behaviour,
           std::vector<TextRange>& out) {
  const size_t first = out.size();
  const auto parts = parts_of(word, matches, invert);
  bool before = false;  // whether the part before was a delimiter
  const auto joined = [&](bool delimiter) {
    switch (behaviour) {
      case SplitBehaviour::kContiguous: return delimiter == before;
      case SplitBehaviour::kMergedWithPrevious:
      case SplitBehaviour::kMergedWithNext: return delimiter && !before;
      default: return false;
    }
  };
  if (behaviour == SplitBehaviour::kMergedWithNext) {
    for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
      if (joined(part->delimiter) && out.size() > first) {
        out.back().begin = part->range.begin;
      } else {
        out.push_back(part->range);
      }
      before = part->delimiter;
    }
    std::reverse(out.begin() + static_cast<std::ptrdiff_t>(first), out.end());
  } else {
    for (const Part& part : parts) {
      if (behaviour == SplitBehaviour::kRemoved && part.delimiter) continue;
      if (joined(part.delimiter) && out.size() > first) {
        out.back().end = part.range.end;
      } else {
        out.push_back(part.range);
      }
      before = part.delimiter;
    }
  }
  const auto empty = [](TextRange range) { return range.begin == range.end; };
  out.erase(std::remove_if(out.begin() + static_cast<std::ptrdiff_t>(first), out.end(), empty), out.end());
}

}  // namespace lockstep::tok
