// A tokenizer for tests: a token for each byte, its value; special tokens of several bytes from 256 on; and
// merges of two bytes, so that a token can reach over the end of a turn.
#pragma once
#include <string>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace lockstep::testing {

class ByteTokenizer : public Tokenizer {
 public:
  // Of the special tokens the first begins texts, where `begins`, and the second ends them.
  explicit ByteTokenizer(std::vector<std::string> special, std::vector<std::string> merges = {},
                         bool begins = false)
      : special_(std::move(special)), merges_(std::move(merges)), begins_(begins) {
    bos_ = 256;
    eos_ = 257;
  }

  void encode_to(std::string_view text, bool special_tokens, std::vector<int32_t>& ids) const override {
    if (special_tokens && begins_) ids.push_back(256);
    const int32_t merged = 256 + static_cast<int32_t>(special_.size());
    while (!text.empty()) {
      if (const int found = starts(text, special_); found >= 0) {
        ids.push_back(256 + found);
        text.remove_prefix(special_[static_cast<size_t>(found)].size());
      } else if (const int pair = starts(text, merges_); pair >= 0) {
        ids.push_back(merged + pair);
        text.remove_prefix(merges_[static_cast<size_t>(pair)].size());
      } else {
        ids.push_back(static_cast<unsigned char>(text[0]));
        text.remove_prefix(1);
      }
    }
  }
  PairIds encode_pair(std::string_view first, std::string_view second, bool special_tokens) const override {
    PairIds pair{encode(first, special_tokens), {}};
    pair.types.assign(pair.ids.size(), 0);
    encode_to(second, false, pair.ids);
    pair.types.resize(pair.ids.size(), 1);
    return pair;
  }
  std::string decode(std::span<const int32_t> ids, bool skip_special) const override {
    std::string text;
    for (const int32_t id : ids)
      if (!skip_special || !is_special(id)) text += token_of(id).value_or("");
    return text;
  }
  std::optional<int32_t> id_of(std::string_view token) const override {
    const std::vector<int32_t> ids = encode(token, false);
    return ids.size() == 1 ? std::optional(ids[0]) : std::nullopt;
  }
  std::optional<std::string> token_of(int32_t id) const override {
    if (id < 0 || id >= vocab_size()) return {};
    if (id < 256) return std::string(1, static_cast<char>(id));
    const size_t at = static_cast<size_t>(id) - 256;
    return at < special_.size() ? special_[at] : merges_[at - special_.size()];
  }
  bool is_special(int32_t id) const override {
    return id >= 256 && id < 256 + static_cast<int32_t>(special_.size());
  }
  int64_t vocab_size() const override { return 256 + std::ssize(special_) + std::ssize(merges_); }

 private:
  static int starts(std::string_view text, const std::vector<std::string>& tokens) {
    for (size_t i = 0; i < tokens.size(); ++i)
      if (text.starts_with(tokens[i])) return static_cast<int>(i);
    return -1;
  }

  std::vector<std::string> special_, merges_;
  bool begins_;
};

}  // namespace lockstep::testing
