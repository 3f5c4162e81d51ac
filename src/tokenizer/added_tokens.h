// Tokens of a tokenizer.json that are found in the text before anything else: special ones, and those added
// later.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/model.h"
#include "tokenizer/normalizers.h"
#include "tokenizer/trie.h"

namespace lockstep::tok {

struct AddedToken {
  std::string content;
  bool single_word = false, lstrip = false, rstrip = false, normalized = true, special = false;

  bool operator==(const AddedToken&) const = default;
};

class AddedTokens {
 public:
  // In the order of the file: each gets the id that the model has for it, else the next free one.
  AddedTokens(std::vector<AddedToken> tokens, const WordModel& model, const Normalizer* normalizer,
              const std::string& where);

  // A stretch of the text: an added token, or text between them (id none).
  struct Part {
    std::optional<int32_t> id;
    size_t begin, end;
  };
  // In raw text those that are not normalized are looked for, in normalized text the others.
  void find(std::string_view text, bool normalized, std::vector<Part>& parts) const;

  std::optional<int32_t> id_of(std::string_view token) const;
  // As it is decoded: normalized where that differs.
  const std::string* token_of(int32_t id) const;
  bool is_special(const std::string& token) const { return special_.contains(token); }
  int64_t id_end() const { return by_id_.empty() ? 0 : by_id_.rbegin()->first + 1; }

 private:
  struct Matcher {
    Trie trie;
    bool starts[256] = {};
    int start_bytes = 0;  // how many bytes a token may start with
    char start = 0;       // one of them

    // The next place where a token may start, from i on; the text's size if there is none.
    size_t next(std::string_view text, size_t i) const;
  };
  static Matcher matcher_of(const std::vector<std::pair<std::string_view, int32_t>>& patterns);

  std::map<std::string, int32_t, std::less<>> ids_;
  std::map<int32_t, AddedToken> by_id_;
  std::map<int32_t, std::string> written_;  // of the normalized ones that differ
  std::set<std::string, std::less<>> special_;
  Matcher raw_, normalized_;
};

}  // namespace lockstep::tok
