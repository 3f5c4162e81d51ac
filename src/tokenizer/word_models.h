// The models of tokenizer.json besides BPE: WordPiece (BERT), Unigram (T5, XLM-R), and WordLevel.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tokenizer/hash.h"
#include "tokenizer/model.h"
#include "tokenizer/trie.h"

namespace lockstep::tok {

// A vocabulary by id and by token.
class TokenTable {
 public:
  explicit TokenTable(std::vector<std::pair<std::string, uint32_t>> vocab);

  std::optional<int32_t> id_of(std::string_view token) const;
  const std::string* token_of(int32_t id) const;
  int64_t tokens() const { return static_cast<int64_t>(ids_.size()); }
  int64_t id_end() const { return static_cast<int64_t>(tokens_.size()); }
  // Of those that start with the prefix, without it.
  std::vector<std::pair<std::string_view, int32_t>> starting_with(std::string_view prefix) const;

 private:
  StringIds ids_;
  std::vector<std::string> tokens_;
  std::vector<bool> has_token_;
};

// What the models below share: a table of tokens.
class TableModel : public WordModel {
 public:
  explicit TableModel(std::vector<std::pair<std::string, uint32_t>> vocab) : table_(std::move(vocab)) {}

  std::optional<int32_t> id_of(std::string_view token) const override { return table_.id_of(token); }
  const std::string* token_of(int32_t id) const override { return table_.token_of(id); }
  int64_t tokens() const override { return table_.tokens(); }
  int64_t id_end() const override { return table_.id_end(); }

 protected:
  TokenTable table_;
};

// The longest token that the rest of the word starts with, again and again; the unknown token for a word that
// cannot be cut so, or is too long.
class WordPiece : public TableModel {
 public:
  struct Spec {
    std::vector<std::pair<std::string, uint32_t>> vocab;
    std::string unk_token, prefix;
    int64_t longest_word = 100;  // in characters
  };
  WordPiece(Spec spec, const std::string& where);
  void encode_word(std::string_view word, ModelScratch& scratch, std::vector<int32_t>& ids) const override;

 private:
  std::string where_, unk_token_;
  int64_t longest_word_;
  Trie first_, inner_;
};

// The tokens with the highest sum of scores, in doubles; of equal sums the one that was found first. Runs of
// unknown characters are one token.
class Unigram : public TableModel {
 public:
  struct Spec {
    std::vector<std::pair<std::string, double>> vocab;  // by id
    std::optional<uint32_t> unk;
    bool byte_fallback = false;
  };
  Unigram(const Spec& spec, const std::string& where);
  void encode_word(std::string_view word, ModelScratch& scratch, std::vector<int32_t>& ids) const override;
  int64_t tokens() const override { return static_cast<int64_t>(scores_.size()); }

 private:
  int32_t unknown() const;
  void append_unknown(std::string_view run, std::vector<int32_t>& ids) const;

  std::string where_;
  std::optional<int32_t> unk_;
  bool byte_fallback_;
  double unk_score_ = 0;
  std::vector<double> scores_;
  Trie trie_;
  std::optional<int32_t> fallback_[256];
};

// Whole words.
class WordLevel : public TableModel {
 public:
  WordLevel(std::vector<std::pair<std::string, uint32_t>> vocab, std::string unk_token,
            const std::string& where);
  void encode_word(std::string_view word, ModelScratch& scratch, std::vector<int32_t>& ids) const override;

 private:
  std::string where_, unk_token_;
};

}  // namespace lockstep::tok
