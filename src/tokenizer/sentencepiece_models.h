// The two models of SentencePiece. They differ from those of tokenizer.json: unigram scores are added up in
// single precision over the whole text, and BPE merges any two neighbours whose concatenation is a piece, by
// its score.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/hash.h"
#include "tokenizer/model.h"
#include "tokenizer/sentencepiece_file.h"
#include "tokenizer/trie.h"

namespace lockstep::tok {

// What both need to know of the pieces.
struct PieceTables {
  int32_t unk = -1;
  bool byte_fallback = false;
  int32_t bytes[256];  // pieces of bytes, where there is byte fallback
  StringIds reserved;  // control, unknown and byte pieces
  StringIds usable;    // the others

  PieceTables(const SentencePieceFile& file, const std::string& where);
  int32_t id_of(std::string_view piece) const;  // unk for none
};

class SentencePieceUnigram {
 public:
  SentencePieceUnigram(const SentencePieceFile& file, const PieceTables& tables);
  // Of a whole normalized text.
  void encode(std::string_view text, ModelScratch& scratch, std::vector<int32_t>& ids) const;

 private:
  const PieceTables& tables_;
  Trie trie_;
  enum class Use : uint8_t { kByScore, kUserDefined, kNever };
  std::vector<float> scores_;
  std::vector<Use> uses_;
  float unk_score_ = 0;
};

class SentencePieceBpe {
 public:
  SentencePieceBpe(const SentencePieceFile& file, const PieceTables& tables, const Trie& user_defined);
  // Of a word; unknown runs are not yet one.
  void encode_word(std::string_view word, ModelScratch& scratch, std::vector<int32_t>& ids) const;
  // As Bpe::cuts_before.
  const bool (&cuts_before() const)[256] { return before_; }

 private:
  uint32_t symbol_of(char32_t c) const { return c < chars_.size() ? chars_[c] : kUnknownSymbol; }
  void append_parts(uint32_t symbol, std::vector<int32_t>& ids,
                    const std::vector<std::pair<uint32_t, uint32_t>>& parts) const;
  void symbols_of(std::string_view word, ModelScratch& scratch) const;

  static constexpr uint32_t kUnknownSymbol = 0x3FFFFFFF;
  static constexpr uint32_t kFrozen = 0x40000000;  // a symbol that the user defined: merges with nothing

  const PieceTables& tables_;
  const Trie& user_defined_;
  bool has_user_defined_ = false;
  std::vector<uint32_t> chars_;    // by code point
  std::vector<int32_t> final_id_;  // by symbol
  std::vector<bool> unused_;       // by piece
  bool any_unused_ = false;
  PairMerges merges_;
  bool before_[256];
};

}  // namespace lockstep::tok
