#include "tokenizer/word_models.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "base/printable.h"
#include "tokenizer/utf8.h"

namespace lockstep::tok {
namespace {

std::vector<std::pair<std::string, uint32_t>> numbered(
    const std::vector<std::pair<std::string, double>>& vocab) {
  std::vector<std::pair<std::string, uint32_t>> tokens;
  tokens.reserve(vocab.size());
  for (const auto& entry : vocab) tokens.emplace_back(entry.first, static_cast<uint32_t>(tokens.size()));
  return tokens;
}

int32_t unknown_word(const TokenTable& table, const std::string& unk_token, const std::string& where) {
  const std::optional<int32_t> id = table.id_of(unk_token);
  if (!id)
    throw UserError(
        "{}: the text has a word that the vocabulary lacks, and model.unk_token '{}' is not in it either",
        where, printable(unk_token));
  return *id;
}

}  // namespace

TokenTable::TokenTable(std::vector<std::pair<std::string, uint32_t>> vocab) {
  ids_.reserve(vocab.size(), vocab.size() * 8);
  for (auto& [token, id] : vocab) {
    ids_.set(token, id);
    if (id >= tokens_.size()) {
      tokens_.resize(id + 1);
      has_token_.resize(id + 1);
    }
    tokens_[id] = std::move(token);
    has_token_[id] = true;
  }
}

std::optional<int32_t> TokenTable::id_of(std::string_view token) const {
  const uint32_t id = ids_.find(token);
  if (id == StringIds::kNone) return std::nullopt;
  return static_cast<int32_t>(id);
}

const std::string* TokenTable::token_of(int32_t id) const {
  if (id < 0 || static_cast<size_t>(id) >= tokens_.size() || !has_token_[static_cast<size_t>(id)])
    return nullptr;
  return &tokens_[static_cast<size_t>(id)];
}

std::vector<std::pair<std::string_view, int32_t>> TokenTable::starting_with(std::string_view prefix) const {
  std::vector<std::pair<std::string_view, int32_t>> found;
  for (size_t id = 0; id < tokens_.size(); ++id) {
    const std::string_view token = tokens_[id];
    // Of a token that is there twice, the id that it is found by.
    if (has_token_[id] && token.starts_with(prefix) && id_of(token) == static_cast<int32_t>(id))
      found.emplace_back(token.substr(prefix.size()), static_cast<int32_t>(id));
  }
  return found;
}

WordPiece::WordPiece(Spec spec, const std::string& where)
    : TableModel(std::move(spec.vocab)),
      where_(where),
      unk_token_(std::move(spec.unk_token)),
      longest_word_(spec.longest_word),
      first_(table_.starting_with("")),
      inner_(table_.starting_with(spec.prefix)) {}

void WordPiece::encode_word(std::string_view word, ModelScratch&, std::vector<int32_t>& ids) const {
  const size_t before = ids.size();
  const auto chars = std::count_if(word.begin(), word.end(), [](char c) { return !is_continuation(c); });
  bool known = chars <= longest_word_;
  for (size_t begin = 0; known && begin < word.size();) {
    const auto [bytes, id] = (begin == 0 ? first_ : inner_).longest(word.substr(begin));
    known = bytes > 0;
    if (known) ids.push_back(id);
    begin += bytes;
  }
  if (known) return;
  ids.resize(before);
  ids.push_back(unknown_word(table_, unk_token_, where_));
}

Unigram::Unigram(const Spec& spec, const std::string& where)
    : TableModel(numbered(spec.vocab)),
      where_(where),
      byte_fallback_(spec.byte_fallback),
      trie_(table_.starting_with("")) {
  if (spec.unk && *spec.unk >= spec.vocab.size())
    throw UserError("{}: model.unk_id is {}, but model.vocab has {} tokens", where, *spec.unk,
                    spec.vocab.size());
  if (spec.unk) unk_ = static_cast<int32_t>(*spec.unk);
  double lowest = std::numeric_limits<double>::infinity();
  for (const auto& [token, score] : spec.vocab) {
    scores_.push_back(score);
    if (score < lowest) lowest = score;
  }
  unk_score_ = lowest - 10.0;
  for (int byte = 0; byte < 256; ++byte) fallback_[byte] = table_.id_of(fmt::format("<0x{:02X}>", byte));
}

int32_t Unigram::unknown() const {
  if (!unk_)
    throw UserError("{}: the text has a character that the vocabulary lacks, and there is no model.unk_id",
                    where_);
  return *unk_;
}

void Unigram::append_unknown(std::string_view run, std::vector<int32_t>& ids) const {
  if (const std::optional<int32_t> whole = table_.id_of(run)) {
    ids.push_back(*whole);
    return;
  }
  const bool bytes = byte_fallback_ && std::all_of(run.begin(), run.end(), [this](char c) {
                       return fallback_[static_cast<unsigned char>(c)].has_value();
                     });
  if (!bytes) {
    ids.push_back(unknown());
    return;
  }
  for (const char c : run) ids.push_back(*fallback_[static_cast<unsigned char>(c)]);
}

void Unigram::encode_word(std::string_view word, ModelScratch& scratch, std::vector<int32_t>& ids) const {
  using Best = ModelScratch::Best;
  constexpr uint32_t kUnreached = ~0u;
  std::vector<Best>& best = scratch.best;  // by where a path ends
  best.assign(word.size() + 1, Best{0.0, kUnreached, 0});
  const auto reach = [&](size_t end, double score, size_t begin, int32_t id) {
    Best& there = best[end];
    if (there.begin == kUnreached || score > there.score) there = {score, static_cast<uint32_t>(begin), id};
  };
  for (size_t begin = 0; begin < word.size();) {
    const double so_far = best[begin].score;
    const size_t char_end = begin + decode_char(word.data() + begin).bytes;
    bool single = false;
    uint32_t node = Trie::kRoot;
    for (size_t end = begin; end < word.size() && trie_.step(node, static_cast<unsigned char>(word[end]));) {
      ++end;
      const int32_t id = trie_.value(node);
      if (id == Trie::kNone) continue;
      reach(end, scores_[static_cast<size_t>(id)] + so_far, begin, id);
      single = single || end == char_end;
    }
    if (!single) {
      const double score = unk_score_ + so_far;
      if (best[char_end].begin == kUnreached || score > best[char_end].score)
        reach(char_end, score, begin, unknown());
    }
    begin = char_end;
  }
  // Backwards along the best path; runs of the unknown token are one.
  std::vector<uint32_t>& ends = scratch.starts;
  ends.clear();
  for (auto end = static_cast<uint32_t>(word.size()); end > 0; end = best[end].begin) ends.push_back(end);
  for (size_t i = ends.size(); i-- > 0;) {
    const uint32_t begin = best[ends[i]].begin;
    if (best[ends[i]].id != unk_) {
      ids.push_back(best[ends[i]].id);
      continue;
    }
    while (i > 0 && best[ends[i - 1]].id == unk_) --i;
    append_unknown(word.substr(begin, ends[i] - begin), ids);
  }
}

WordLevel::WordLevel(std::vector<std::pair<std::string, uint32_t>> vocab, std::string unk_token,
                     const std::string& where)
    : TableModel(std::move(vocab)), where_(where), unk_token_(std::move(unk_token)) {}

void WordLevel::encode_word(std::string_view word, ModelScratch&, std::vector<int32_t>& ids) const {
  const std::optional<int32_t> id = table_.id_of(word);
  ids.push_back(id ? *id : unknown_word(table_, unk_token_, where_));
}

}  // namespace lockstep::tok
