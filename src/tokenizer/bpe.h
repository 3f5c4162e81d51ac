// Byte-pair encoding as a tokenizer.json describes it.
//
// Over characters, or over bytes where the pre-tokenizer is ByteLevel: the reference then writes every byte
// as a visible character and merges these. As that is one to one, the words stay bytes here and the
// vocabulary is read back instead.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tokenizer/hash.h"
#include "tokenizer/model.h"

namespace lockstep::tok {

struct BpeSpec {
  std::vector<std::pair<std::string, uint32_t>> vocab;
  std::vector<std::pair<std::string, std::string>> merges;  // by rank
  std::string unk_token;                                    // empty: none
  std::string continuing_prefix, word_suffix;
  bool fuse_unk = false;
  bool byte_fallback = false;
  bool ignore_merges = false;
};

class Bpe : public WordModel {
 public:
  // `where` names the file in errors. Over bytes only where neither prefix, suffix nor byte fallback is asked
  // for.
  Bpe(BpeSpec spec, bool over_bytes, const std::string& where);
  static bool can_work_on_bytes(const BpeSpec& spec) {
    return spec.continuing_prefix.empty() && spec.word_suffix.empty() && !spec.byte_fallback;
  }

  void encode_word(std::string_view word, ModelScratch& scratch, std::vector<int32_t>& ids) const override;
  std::optional<int32_t> id_of(std::string_view token) const override;
  const std::string* token_of(int32_t id) const override;
  int64_t tokens() const override { return static_cast<int64_t>(spelled_.size()); }
  int64_t id_end() const override { return static_cast<int64_t>(tokens_.size()); }

  // Whether a text can be cut before `mark` where `before` is the byte in front of it, and the parts be
  // encoded as words of their own: no merge reaches over that place.
  bool cuts_before(std::string_view mark, bool (&before)[256]) const;

 private:
  uint32_t unknown() const;
  void add_char(std::string_view symbol, uint32_t& pending, ModelScratch& scratch) const;
  void symbols_of_chars(std::string_view word, ModelScratch& scratch) const;
  void symbols_of_bytes(std::string_view word, ModelScratch& scratch) const;

  std::string where_;
  bool over_bytes_, fuse_unk_, byte_fallback_, ignore_merges_;
  std::string unk_token_, prefix_, suffix_;
  std::vector<std::string> tokens_;  // by id; as the file spells them
  std::vector<bool> has_token_;
  StringIds spelled_;            // as the file spells them
  StringIds words_;              // as they stand in the words that are encoded
  std::vector<uint32_t> chars_;  // by code point or byte: its id
  uint32_t fallback_[256];       // of <0x00> to <0xFF>
  uint32_t unk_ = StringIds::kNone;
  PairMerges merges_;
  std::vector<uint32_t> merged_;  // what the merges make
};

// How ByteLevel writes a byte, and back; 256 for a character that stands for none.
char32_t byte_level_char(unsigned char byte);
uint32_t byte_level_byte(char32_t c);
// The bytes that the text stands for; false if one of its characters stands for none.
bool from_byte_level(std::string_view text, std::string& bytes);

}  // namespace lockstep::tok
