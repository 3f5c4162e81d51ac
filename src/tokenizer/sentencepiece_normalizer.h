// SentencePiece's own normalizer: the map of characters by longest match on the bytes, and what becomes of
// spaces.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "tokenizer/charsmap.h"
#include "tokenizer/sentencepiece_file.h"
#include "tokenizer/trie.h"

namespace lockstep::tok {

class SentencePieceNormalizer {
 public:
  // Symbols that the user defined, in the trie, are kept as they are.
  SentencePieceNormalizer(const NormalizerRules& rules, bool whitespace_as_suffix, const Trie* user_defined,
                          const std::string& where);

  // Of any bytes; those that are no UTF-8 become U+FFFD each.
  void apply(std::string_view text, std::string& out) const;

 private:
  // What the front of the text becomes, and how much of it that is.
  std::string_view front(std::string_view text, size_t& bytes) const;

  NormalizerRules rules_;
  bool whitespace_as_suffix_;
  const Trie* user_defined_;
  std::optional<CharsMap> map_;
  bool plain_[256];  // letters and the like that stay as they are before any other of ASCII
};

}  // namespace lockstep::tok
