// A SentencePiece .model at work.
#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "tokenizer/pre_tokenizers.h"
#include "tokenizer/scratch_pool.h"
#include "tokenizer/sentencepiece_models.h"
#include "tokenizer/sentencepiece_normalizer.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/utf8.h"

namespace lockstep {
namespace tok {
namespace {

constexpr std::string_view kMark = "\xE2\x96\x81";
constexpr size_t kMostBytes = size_t{1} << 30;

Trie user_defined_trie(const SentencePieceFile& file) {
  std::vector<std::pair<std::string_view, int32_t>> symbols;
  for (size_t id = 0; id < file.pieces.size(); ++id) {
    if (file.pieces[id].type == PieceType::kUserDefined)
      symbols.emplace_back(file.pieces[id].text, static_cast<int32_t>(id));
  }
  return Trie(std::move(symbols));
}

struct PieceScratch {
  WordCache cache;
  ModelScratch model;
  std::string normal;
  TextWords words;
};

class SentencePieceTokenizer : public Tokenizer {
 public:
  SentencePieceTokenizer(SentencePieceFile file, const std::string& where);

  void encode_to(std::string_view text, bool special_tokens, std::vector<int32_t>& ids) const override;
  PairIds encode_pair(std::string_view first, std::string_view second, bool special_tokens) const override;
  std::string decode(std::span<const int32_t> ids, bool skip_special) const override;
  std::optional<int32_t> id_of(std::string_view token) const override;
  std::optional<std::string> token_of(int32_t id) const override;
  bool is_special(int32_t id) const override;
  int64_t vocab_size() const override { return static_cast<int64_t>(file_.pieces.size()); }

 private:
  void frame(bool bos, bool eos) override {
    add_bos_ = bos && bos_;
    add_eos_ = eos && eos_;
  }
  void encode_text(std::string_view text, std::vector<int32_t>& ids) const;
  std::optional<int32_t> control(std::string_view piece) const;
  std::string surface(int32_t id, bool at_start, bool& took_space) const;

  SentencePieceFile file_;
  PieceTables tables_;
  Trie user_defined_;
  SentencePieceNormalizer normalizer_;
  std::optional<SentencePieceNormalizer> denormalizer_;
  std::optional<SentencePieceUnigram> unigram_;
  std::optional<SentencePieceBpe> bpe_;
  std::unique_ptr<PreTokenizer> mark_cutter_;
  bool add_bos_ = false, add_eos_ = false;
  mutable ScratchPool<PieceScratch> pool_;
};

SentencePieceTokenizer::SentencePieceTokenizer(SentencePieceFile file, const std::string& where)
    : file_(std::move(file)),
      tables_(file_, where),
      user_defined_(user_defined_trie(file_)),
      normalizer_(file_.normalizer, file_.whitespace_as_suffix, &user_defined_, where) {
  if (file_.has_denormalizer) denormalizer_.emplace(file_.denormalizer, false, nullptr, where);
  if (file_.kind == SentencePieceFile::Kind::kBpe) {
    bpe_.emplace(file_, tables_, user_defined_);
    mark_cutter_ = make_mark_cutter(std::string(kMark), bpe_->cuts_before());
  } else {
    unigram_.emplace(file_, tables_);
  }
  bos_ = control(file_.bos_piece);
  eos_ = control(file_.eos_piece);
  pad_ = control(file_.pad_piece);
  unk_ = tables_.unk;
}

std::optional<int32_t> SentencePieceTokenizer::control(std::string_view piece) const {
  const uint32_t id = tables_.reserved.find(piece);
  if (id == StringIds::kNone || file_.pieces[id].type != PieceType::kControl) return std::nullopt;
  return static_cast<int32_t>(id);
}

void SentencePieceTokenizer::encode_text(std::string_view text, std::vector<int32_t>& ids) const {
  if (text.size() > kMostBytes)
    throw UserError("a text of {} bytes; the longest that can be encoded is {}", text.size(), kMostBytes);
  const auto scratch = pool_.take();
  const size_t first = ids.size();
  normalizer_.apply(text, scratch->normal);
  if (unigram_) {
    unigram_->encode(scratch->normal, scratch->model, ids);
  } else {
    scratch->words.reset(scratch->normal, true);
    mark_cutter_->apply(scratch->words);
    const std::string_view whole = scratch->normal;
    for (const auto [begin, end] : scratch->words.words)
      encode_cached(*bpe_, whole.substr(begin, end - begin), scratch->cache, scratch->model, ids);
  }
  // A run of unknown pieces is one.
  if (tables_.byte_fallback) return;
  const auto both_unknown = [this](int32_t a, int32_t b) { return a == tables_.unk && b == tables_.unk; };
  ids.erase(std::unique(ids.begin() + static_cast<std::ptrdiff_t>(first), ids.end(), both_unknown),
            ids.end());
}

void SentencePieceTokenizer::encode_to(std::string_view text, bool special_tokens,
                                       std::vector<int32_t>& ids) const {
  if (special_tokens && add_bos_) ids.push_back(*bos_);
  encode_text(text, ids);
  if (special_tokens && add_eos_) ids.push_back(*eos_);
}

PairIds SentencePieceTokenizer::encode_pair(std::string_view first, std::string_view second,
                                            bool special_tokens) const {
  PairIds out;
  encode_to(first, special_tokens, out.ids);
  out.types.resize(out.ids.size(), 0);
  encode_to(second, special_tokens, out.ids);
  out.types.resize(out.ids.size(), 1);
  return out;
}

// Of a piece that is no byte. Where spaces were put in front or trimmed, the first one is taken away again.
std::string SentencePieceTokenizer::surface(int32_t id, bool at_start, bool& took_space) const {
  const SentencePieceEntry& entry = file_.pieces[static_cast<size_t>(id)];
  took_space = false;
  if (entry.type == PieceType::kControl) return "";
  if (entry.type == PieceType::kUnknown) return file_.unk_surface;
  std::string_view piece = entry.text;
  if (at_start && (file_.normalizer.add_dummy_prefix || file_.normalizer.remove_extra_whitespaces) &&
      piece.starts_with(kMark)) {
    piece.remove_prefix(kMark.size());
    took_space = !file_.normalizer.remove_extra_whitespaces;
  }
  std::string out;
  for (size_t at = 0; (at = piece.find(kMark)) != std::string_view::npos;) {
    out.append(piece.substr(0, at)).append(" ");
    piece.remove_prefix(at + kMark.size());
  }
  return out.append(piece);
}

std::string SentencePieceTokenizer::decode(std::span<const int32_t> ids, bool skip_special) const {
  std::string text, bytes;
  const auto close_bytes = [&] {
    std::string_view rest = bytes;
    while (!rest.empty()) {
      uint32_t bad = 0;
      const uint32_t length = leading_char(rest, bad);
      text.append(length ? rest.substr(0, length) : kReplacementChar);
      rest.remove_prefix(length ? length : 1);
    }
    bytes.clear();
  };
  bool at_start = true, took_space = false;
  for (const int32_t id : ids) {
    if (id < 0 || id >= vocab_size()) continue;
    // The reference decodes by the text of a piece: of two with one text, the reserved one.
    const SentencePieceEntry& entry =
        file_.pieces[static_cast<size_t>(tables_.id_of(file_.pieces[static_cast<size_t>(id)].text))];
    if (entry.type == PieceType::kByte) {
      const auto* found =
          std::find(std::begin(tables_.bytes), std::end(tables_.bytes), tables_.id_of(entry.text));
      bytes.push_back(static_cast<char>(found - std::begin(tables_.bytes)));
      continue;
    }
    close_bytes();
    if (took_space || !text.empty()) at_start = false;
    std::string shown = surface(tables_.id_of(entry.text), at_start, took_space);
    if (!skip_special && entry.type == PieceType::kControl) shown = entry.text;
    text += shown;
  }
  close_bytes();
  if (denormalizer_) {
    std::string out;
    denormalizer_->apply(text, out);
    return out;
  }
  return text;
}

std::optional<int32_t> SentencePieceTokenizer::id_of(std::string_view token) const {
  uint32_t id = tables_.reserved.find(token);
  if (id == StringIds::kNone) id = tables_.usable.find(token);
  if (id == StringIds::kNone) return std::nullopt;
  return static_cast<int32_t>(id);
}

std::optional<std::string> SentencePieceTokenizer::token_of(int32_t id) const {
  if (id < 0 || id >= vocab_size()) return std::nullopt;
  return file_.pieces[static_cast<size_t>(id)].text;
}

bool SentencePieceTokenizer::is_special(int32_t id) const {
  return id >= 0 && id < vocab_size() && file_.pieces[static_cast<size_t>(id)].type == PieceType::kControl;
}

}  // namespace
}  // namespace tok

std::unique_ptr<Tokenizer> Tokenizer::from_sentencepiece(std::string_view bytes, const std::string& where) {
  return std::make_unique<tok::SentencePieceTokenizer>(tok::SentencePieceFile::parse(bytes, where), where);
}

}  // namespace lockstep
