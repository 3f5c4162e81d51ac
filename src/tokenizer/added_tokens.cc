#include "tokenizer/added_tokens.h"

#include <algorithm>

#include "base/error.h"
#include "base/printable.h"
#include "tokenizer/unicode/code_points.h"
#include "tokenizer/utf8.h"

namespace lockstep::tok {
namespace {

size_t last_char(std::string_view text) {
  size_t begin = text.size() - 1;
  while (is_continuation(text[begin])) --begin;
  return begin;
}

bool ends_in_word(std::string_view text) {
  return !text.empty() && code_points()[decode_char(text.data() + last_char(text)).value] & kWordChar;
}

bool starts_with_word(std::string_view text) {
  return !text.empty() && code_points()[decode_char(text.data()).value] & kWordChar;
}

size_t without_trailing_spaces(std::string_view text) {
  while (!text.empty()) {
    const size_t begin = last_char(text);
    if (!(code_points()[decode_char(text.data() + begin).value] & kSpaceChar)) break;
    text = text.substr(0, begin);
  }
  return text.size();
}

size_t leading_spaces(std::string_view text) {
  size_t i = 0;
  while (i < text.size()) {
    const DecodedChar c = decode_char(text.data() + i);
    if (!(code_points()[c.value] & kSpaceChar)) break;
    i += c.bytes;
  }
  return i;
}

}  // namespace

AddedTokens::Matcher AddedTokens::matcher_of(
    const std::vector<std::pair<std::string_view, int32_t>>& patterns) {
  Matcher matcher;
  matcher.trie = Trie(patterns);
  for (const auto& [pattern, id] : patterns) {
    bool& starts = matcher.starts[static_cast<unsigned char>(pattern[0])];
    if (!starts) ++matcher.start_bytes;
    starts = true;
    matcher.start = pattern[0];
  }
  return matcher;
}

size_t AddedTokens::Matcher::next(std::string_view text, size_t i) const {
  if (start_bytes == 0) return text.size();
  if (start_bytes == 1) return std::min(text.find(start, i), text.size());  // by memchr
  while (i < text.size() && !starts[static_cast<unsigned char>(text[i])]) ++i;
  return i;
}

AddedTokens::AddedTokens(std::vector<AddedToken> tokens, const WordModel& model, const Normalizer* normalizer,
                         const std::string& where) {
  auto next = static_cast<int32_t>(model.tokens());
  for (AddedToken& token : tokens) {
    if (token.content.empty()) continue;
    const std::optional<int32_t> known =
        id_of(token.content) ? id_of(token.content) : model.id_of(token.content);
    const int32_t id = known ? *known : next++;
    ids_[token.content] = id;
    if (token.special) special_.insert(token.content);
    by_id_[id] = std::move(token);
  }
  std::vector<std::pair<std::string_view, int32_t>> raw, normal;
  for (const auto& [id, token] : by_id_) {
    std::string_view pattern = token.content;
    if (token.normalized && normalizer) {
      NormalText text{token.content};
      normalizer->apply(text);
      if (text.text.empty())
        throw UserError("{}: the added token '{}' is nothing once it is normalized", where,
                        printable(token.content));
      if (text.text != token.content) pattern = written_[id] = std::move(text.text);
    }
    (token.normalized ? normal : raw).emplace_back(pattern, id);
  }
  raw_ = matcher_of(raw);
  normalized_ = matcher_of(normal);
}

void AddedTokens::find(std::string_view text, bool normalized, std::vector<Part>& parts) const {
  parts.clear();
  const Matcher& matcher = normalized ? normalized_ : raw_;
  size_t done = 0;  // up to here the text is in a part
  for (size_t i = 0; (i = matcher.next(text, i)) < text.size();) {
    const auto [bytes, id] = matcher.trie.longest(text.substr(i));
    if (bytes == 0) {
      ++i;
      continue;
    }
    size_t begin = i, end = i + bytes;
    i = end;
    const AddedToken& token = by_id_.at(id);
    if (token.single_word && (ends_in_word(text.substr(0, begin)) || starts_with_word(text.substr(end))))
      continue;
    if (token.lstrip) begin = std::max(without_trailing_spaces(text.substr(0, begin)), done);
    if (token.rstrip) end += leading_spaces(text.substr(end));
    if (done < begin) parts.push_back({std::nullopt, done, begin});
    parts.push_back({id, begin, end});
    done = end;
  }
  if (done != text.size()) parts.push_back({std::nullopt, done, text.size()});
}

std::optional<int32_t> AddedTokens::id_of(std::string_view token) const {
  const auto found = ids_.find(token);
  if (found == ids_.end()) return std::nullopt;
  return found->second;
}

const std::string* AddedTokens::token_of(int32_t id) const {
  if (const auto written = written_.find(id); written != written_.end()) return &written->second;
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : &found->second.content;
}

}  // namespace lockstep::tok
