// What becomes of the delimiters when a text is split at them.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "tokenizer/json_part.h"
#include "tokenizer/scanners.h"

namespace lockstep::tok {

enum class SplitBehaviour : uint8_t {
  kRemoved,
  kIsolated,
  kMergedWithPrevious,
  kMergedWithNext,
  kContiguous
};

SplitBehaviour read_behaviour(JsonPart& part, std::string_view key);

// Cuts the word at the matches, which are in order and do not overlap; with `invert` the gaps between them
// are the delimiters. Empty parts are left out.
void split(TextRange word, std::span<const TextRange> matches, bool invert, SplitBehaviour behaviour,
           std::vector<TextRange>& out);

}  // namespace lockstep::tok
