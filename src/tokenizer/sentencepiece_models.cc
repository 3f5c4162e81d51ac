#include "tokenizer/sentencepiece_models.h"

#include <algorithm>
#include <cfloat>
#include <map>

#include "base/error.h"
#include "base/printable.h"
#include "tokenizer/merging.h"
#include "tokenizer/utf8.h"

namespace lockstep::tok {
namespace {

constexpr std::string_view kMark = "\xE2\x96\x81";

bool is_usable(PieceType type) {
  return type == PieceType::kNormal || type == PieceType::kUserDefined || type == PieceType::kUnused;
}

int byte_of(std::string_view piece) {
  for (int byte = 0; byte < 256; ++byte) {
    if (piece == fmt::format("<0x{:02X}>", byte)) return byte;
  }
  return -1;
}

// By their lead byte, as SentencePiece counts them.
uint32_t char_length(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  return static_cast<uint32_t>(std::min<size_t>(lead < 0xC0   ? 1
                                                : lead < 0xE0 ? 2
                                                : lead < 0xF0 ? 3
                                                              : 4,
                                                text.size()));
}

std::vector<std::pair<std::string_view, int32_t>> usable_pieces(const SentencePieceFile& file) {
  std::vector<std::pair<std::string_view, int32_t>> pieces;
  for (size_t id = 0; id < file.pieces.size(); ++id) {
    if (is_usable(file.pieces[id].type)) pieces.emplace_back(file.pieces[id].text, static_cast<int32_t>(id));
  }
  return pieces;
}

}  // namespace

PieceTables::PieceTables(const SentencePieceFile& file, const std::string& where)
    : byte_fallback(file.byte_fallback) {
  std::fill(std::begin(bytes), std::end(bytes), -1);
  for (size_t id = 0; id < file.pieces.size(); ++id) {
    const SentencePieceEntry& piece = file.pieces[id];
    StringIds& table = is_usable(piece.type) ? usable : reserved;
    if (table.find(piece.text) != StringIds::kNone)
      throw UserError("{}: piece {}, '{}', is there twice", where, id, printable(piece.text));
    table.set(piece.text, static_cast<uint32_t>(id));
    if (piece.type == PieceType::kUnknown) {
      if (unk >= 0) throw UserError("{}: pieces {} and {} are both the unknown one", where, unk, id);
      unk = static_cast<int32_t>(id);
    }
    if (piece.type == PieceType::kByte) {
      const int byte = byte_of(piece.text);
      if (!byte_fallback || byte < 0)
        throw UserError("{}: piece {}, '{}', is no byte, or the model has no byte fallback", where, id,
                        printable(piece.text));
      bytes[byte] = static_cast<int32_t>(id);
    }
  }
  if (unk < 0) throw UserError("{}: a SentencePiece model without an unknown piece", where);
  if (byte_fallback && std::find(std::begin(bytes), std::end(bytes), -1) != std::end(bytes))
    throw UserError("{}: byte fallback without a piece for each of the 256 bytes", where);
}

int32_t PieceTables::id_of(std::string_view piece) const {
  uint32_t id = reserved.find(piece);
  if (id == StringIds::kNone) id = usable.find(piece);
  return id == StringIds::kNone ? unk : static_cast<int32_t>(id);
}

SentencePieceUnigram::SentencePieceUnigram(const SentencePieceFile& file, const PieceTables& tables)
    : tables_(tables), trie_(usable_pieces(file)) {
  float lowest = FLT_MAX;
  for (const SentencePieceEntry& piece : file.pieces) {
    scores_.push_back(piece.score);
    uses_.push_back(piece.type == PieceType::kUserDefined ? Use::kUserDefined
                    : piece.type == PieceType::kUnused    ? Use::kNever
                                                          : Use::kByScore);
    if (piece.type != PieceType::kNormal) continue;
    lowest = std::min(lowest, piece.score);
  }
  unk_score_ = lowest - 10.0f;
}

void SentencePieceUnigram::encode(std::string_view text, ModelScratch& scratch,
                                  std::vector<int32_t>& ids) const {
  using Best = ModelScratch::Best;
  constexpr uint32_t kUnreached = ~0u;
  std::vector<Best>& best = scratch.best;
  best.assign(text.size() + 1, Best{0.0, kUnreached, -1});
  for (size_t begin = 0; begin < text.size();) {
    const auto so_far = static_cast<float>(best[begin].score);
    const size_t char_end = begin + char_length(text.substr(begin));
    bool single = false;
    uint32_t node = Trie::kRoot;
    for (size_t end = begin; end < text.size() && trie_.step(node, static_cast<unsigned char>(text[end]));) {
      ++end;
      const int32_t id = trie_.value(node);
      if (id == Trie::kNone || uses_[static_cast<size_t>(id)] == Use::kNever) continue;
      // Single precision throughout. What the user defined has a bonus of a tenth for each byte but one.
      const float score =
          uses_[static_cast<size_t>(id)] == Use::kUserDefined
              ? static_cast<float>(static_cast<double>(static_cast<float>(end - begin) * 0.1F) - 0.1)
              : scores_[static_cast<size_t>(id)];
      const float sum = score + so_far;
      Best& there = best[end];
      if (there.begin == kUnreached || static_cast<double>(sum) > there.score)
        there = {static_cast<double>(sum), static_cast<uint32_t>(begin), id};
      single = single || end == char_end;
    }
    if (!single) {
      const float sum = unk_score_ + so_far;
      Best& there = best[char_end];
      if (there.begin == kUnreached || static_cast<double>(sum) > there.score)
        there = {static_cast<double>(sum), static_cast<uint32_t>(begin), tables_.unk};
    }
    begin = char_end;
  }
  std::vector<uint32_t>& ends = scratch.starts;
  ends.clear();
  for (auto end = static_cast<uint32_t>(text.size()); end > 0; end = best[end].begin) ends.push_back(end);
  for (size_t i = ends.size(); i-- > 0;) {
    const Best& piece = best[ends[i]];
    if (piece.id == tables_.unk && tables_.byte_fallback) {
      for (uint32_t at = piece.begin; at < ends[i]; ++at)
        ids.push_back(tables_.bytes[static_cast<unsigned char>(text[at])]);
    } else {
      ids.push_back(piece.id);
    }
  }
}

SentencePieceBpe::SentencePieceBpe(const SentencePieceFile& file, const PieceTables& tables,
                                   const Trie& user_defined)
    : tables_(tables), user_defined_(user_defined) {
  const auto pieces = usable_pieces(file);
  for (size_t id = 0; id < file.pieces.size(); ++id) {
    const SentencePieceEntry& piece = file.pieces[id];
    final_id_.push_back(tables_.id_of(piece.text));
    unused_.push_back(piece.type == PieceType::kUnused);
    any_unused_ = any_unused_ || unused_.back();
    has_user_defined_ = has_user_defined_ || piece.type == PieceType::kUserDefined;
  }
  // Every character of a piece is a symbol, whether it is a piece of its own or not.
  std::map<float, uint32_t, std::greater<>> ranks;  // equal scores are merged from the left
  for (const auto& [text, id] : pieces) {
    ranks[file.pieces[static_cast<size_t>(id)].score] = 0;
    for (const char32_t c : to_chars(text)) {
      if (c >= chars_.size()) chars_.resize(c + 1, kUnknownSymbol);
      if (chars_[c] != kUnknownSymbol) continue;
      const uint32_t piece = tables_.usable.find(from_chars(std::u32string(1, c)));
      chars_[c] = piece != StringIds::kNone ? piece : static_cast<uint32_t>(final_id_.size());
      if (piece == StringIds::kNone) final_id_.push_back(tables_.id_of(from_chars(std::u32string(1, c))));
    }
  }
  uint32_t next = 0;
  for (auto& [score, rank] : ranks) rank = next++;
  std::fill(std::begin(before_), std::end(before_), true);
  before_[static_cast<unsigned char>(kMark.back())] = false;
  const auto symbol = [&](std::string_view part) {
    const DecodedChar c = decode_char(part.data());
    if (c.bytes == part.size()) return chars_[c.value];
    const uint32_t piece = tables_.usable.find(part);
    return piece == StringIds::kNone ? kUnknownSymbol : piece;
  };
  for (const auto& [text, id] : pieces) {
    const PairMerges::Merge merge{ranks[file.pieces[static_cast<size_t>(id)].score],
                                  static_cast<uint32_t>(id)};
    for (size_t cut = decode_char(text.data()).bytes; cut < text.size();
         cut += decode_char(text.data() + cut).bytes) {
      const uint32_t left = symbol(text.substr(0, cut)), right = symbol(text.substr(cut));
      if (left != kUnknownSymbol && right != kUnknownSymbol) merges_.set(left, right, merge);
      if (text.substr(cut).starts_with(kMark)) before_[static_cast<unsigned char>(text[cut - 1])] = false;
    }
  }
  // What an unused piece is cut into again depends on the whole text.
  if (any_unused_) std::fill(std::begin(before_), std::end(before_), false);
}

void SentencePieceBpe::symbols_of(std::string_view word, ModelScratch& scratch) const {
  scratch.symbols.clear();
  scratch.starts.clear();
  for (size_t i = 0; i < word.size();) {
    scratch.starts.push_back(static_cast<uint32_t>(i));
    const std::string_view rest = word.substr(i);
    if (has_user_defined_) {
      const auto [bytes, id] = user_defined_.longest(rest);
      if (bytes) {
        scratch.symbols.push_back(static_cast<uint32_t>(id) | kFrozen);
        i += bytes;
        continue;
      }
    }
    uint32_t bad = 0;
    const uint32_t bytes = leading_char(rest, bad);
    scratch.symbols.push_back(bytes ? symbol_of(decode_char(rest.data()).value) : kUnknownSymbol);
    i += bytes ? bytes : char_length(rest);
  }
}

// A piece that is not used is cut again into what it was merged from.
void SentencePieceBpe::append_parts(uint32_t symbol, std::vector<int32_t>& ids,
                                    const std::vector<std::pair<uint32_t, uint32_t>>& parts) const {
  const auto [left, right] = symbol < parts.size() ? parts[symbol] : std::pair<uint32_t, uint32_t>{0, 0};
  if (symbol >= unused_.size() || !unused_[symbol] || (left == 0 && right == 0)) {
    ids.push_back(final_id_[symbol]);
    return;
  }
  append_parts(left, ids, parts);
  append_parts(right, ids, parts);
}

void SentencePieceBpe::encode_word(std::string_view word, ModelScratch& scratch,
                                   std::vector<int32_t>& ids) const {
  symbols_of(word, scratch);
  std::vector<std::pair<uint32_t, uint32_t>> parts;
  if (any_unused_) {
    parts.resize(unused_.size());
    merge_symbols<true>(merges_, scratch, [&](uint32_t left, uint32_t right, uint32_t merged) {
      if (merged < unused_.size() && unused_[merged]) parts[merged] = {left, right};
    });
  } else {
    merge_symbols<true>(merges_, scratch, [](uint32_t, uint32_t, uint32_t) {});
  }
  for (size_t i = 0; i < scratch.symbols.size(); ++i) {
    const uint32_t symbol = scratch.symbols[i];
    const size_t begin = scratch.starts[i];
    const size_t end = i + 1 < scratch.starts.size() ? scratch.starts[i + 1] : word.size();
    if (symbol & kFrozen) {
      ids.push_back(static_cast<int32_t>(symbol & ~kFrozen));
      continue;
    }
    const int32_t id = symbol == kUnknownSymbol ? tables_.unk : final_id_[symbol];
    if (id == tables_.unk && tables_.byte_fallback) {
      for (size_t at = begin; at < end; ++at)
        ids.push_back(tables_.bytes[static_cast<unsigned char>(word[at])]);
    } else if (any_unused_ && symbol != kUnknownSymbol) {
      append_parts(symbol, ids, parts);
    } else {
      ids.push_back(id);
    }
  }
}

}  // namespace lockstep::tok
