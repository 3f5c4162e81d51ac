// A tokenizer.json at work: added tokens, normalizer, pre-tokenizer, model, framing, and back through the
// decoder.
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "tokenizer/added_tokens.h"
#include "tokenizer/bpe.h"
#include "tokenizer/decoders.h"
#include "tokenizer/framing.h"
#include "tokenizer/json_model.h"
#include "tokenizer/normalizers.h"
#include "tokenizer/pre_tokenizers.h"
#include "tokenizer/scratch_pool.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/utf8.h"

namespace lockstep {
namespace tok {
namespace {

using nlohmann::json;

constexpr size_t kMostBytes = size_t{1}
                              << 30;  // of one text: offsets are 32 bits wide, and steps may treble it
constexpr int kDeepest = 64;          // of objects and lists within each other

struct EncodeScratch {
  WordCache cache;
  ModelScratch model;
  TextWords words;
  NormalText normal;
  std::vector<AddedTokens::Part> raw_parts, parts;
};

class JsonTokenizer : public Tokenizer {
 public:
  JsonTokenizer(const json& file, const std::string& where);

  void encode_to(std::string_view text, bool special_tokens, std::vector<int32_t>& ids) const override;
  PairIds encode_pair(std::string_view first, std::string_view second, bool special_tokens) const override;
  std::string decode(std::span<const int32_t> ids, bool skip_special) const override;
  std::optional<int32_t> id_of(std::string_view token) const override;
  std::optional<std::string> token_of(int32_t id) const override;
  bool is_special(int32_t id) const override;
  int64_t vocab_size() const override { return std::max(model_->id_end(), added_->id_end()); }

 private:
  void encode_text(std::string_view text, std::vector<int32_t>& ids) const;
  void encode_part(std::string_view text, bool at_start, EncodeScratch& scratch,
                   std::vector<int32_t>& ids) const;
  const std::string* spelled(int32_t id) const;

  std::unique_ptr<WordModel> model_;
  std::unique_ptr<Normalizer> normalizer_;
  std::unique_ptr<PreTokenizer> pre_tokenizer_;
  std::unique_ptr<PreTokenizer> mark_cutter_;
  std::unique_ptr<AddedTokens> added_;
  std::unique_ptr<Decoder> decoder_;
  Framing framing_;
  mutable ScratchPool<EncodeScratch> pool_;
};

std::vector<AddedToken> read_added(JsonPart& file) {
  std::vector<AddedToken> tokens;
  if (!file.find("added_tokens")) return tokens;
  for (JsonPart& part : file.parts("added_tokens")) {
    AddedToken token;
    token.content = part.text("content");
    token.single_word = part.flag("single_word", false);
    token.lstrip = part.flag("lstrip", false);
    token.rstrip = part.flag("rstrip", false);
    token.special = part.flag("special", false);
    token.normalized = part.flag("normalized", !token.special);
    part.ignore({"id"});
    part.finish();
    tokens.push_back(std::move(token));
  }
  return tokens;
}

// A word may be a whole text: what comes through such a pre-tokenizer is cut further where the model allows
// it.
bool leaves_long_words(const json& file) {
  const auto found = file.find("pre_tokenizer");
  if (found == file.end() || !found->is_object()) return true;
  const std::string type = found->value("type", json("")).is_string() ? found->value("type", "") : "";
  const auto split = found->find("split");
  return type == "Split" || type == "Sequence" ||
         (type == "Metaspace" && split != found->end() && split->is_boolean() && !split->get<bool>());
}

JsonTokenizer::JsonTokenizer(const json& value, const std::string& where) {
  JsonPart file(value, where, "");
  static constexpr std::string_view kVersions[] = {"1.0"};
  if (file.find("version")) file.choice("version", kVersions);
  file.ignore({"truncation", "padding"});
  std::optional<JsonPart> pre_tokenizer = file.optional_part("pre_tokenizer");
  JsonPart model = file.part("model");
  JsonModel made = make_model(model, pre_tokenizer && ends_in_byte_level(*pre_tokenizer));
  model_ = std::move(made.model);
  if (pre_tokenizer) pre_tokenizer_ = make_pre_tokenizer(*pre_tokenizer, made.over_bytes);
  bool before[256];
  if (made.bpe && leaves_long_words(value) && made.bpe->cuts_before("\u2581", before))
    mark_cutter_ = make_mark_cutter("\u2581", before);
  if (std::optional<JsonPart> part = file.optional_part("normalizer")) normalizer_ = make_normalizer(*part);
  if (std::optional<JsonPart> part = file.optional_part("post_processor")) framing_ = Framing(*part);
  if (std::optional<JsonPart> part = file.optional_part("decoder")) decoder_ = make_decoder(*part);
  added_ = std::make_unique<AddedTokens>(read_added(file), *model_, normalizer_.get(), where);
  file.finish();
}

void JsonTokenizer::encode_part(std::string_view text, bool at_start, EncodeScratch& scratch,
                                std::vector<int32_t>& ids) const {
  scratch.words.reset(text, at_start);
  if (pre_tokenizer_) pre_tokenizer_->apply(scratch.words);
  if (mark_cutter_) mark_cutter_->apply(scratch.words);
  const std::string_view whole = scratch.words.text;
  for (const auto [begin, end] : scratch.words.words)
    encode_cached(*model_, whole.substr(begin, end - begin), scratch.cache, scratch.model, ids);
}

void JsonTokenizer::encode_text(std::string_view text, std::vector<int32_t>& ids) const {
  if (text.size() > kMostBytes)
    throw UserError("a text of {} bytes; the longest that can be encoded is {}", text.size(), kMostBytes);
  std::string repaired;
  if (!is_utf8(text)) text = repaired = with_replacements(text);
  const auto scratch = pool_.take();
  ids.reserve(ids.size() + text.size() / 3 + 8);
  added_->find(text, false, scratch->raw_parts);
  for (const AddedTokens::Part& raw : scratch->raw_parts) {
    if (raw.id) {
      ids.push_back(*raw.id);
      continue;
    }
    std::string_view part = text.substr(raw.begin, raw.end - raw.begin);
    bool from_start = raw.begin == 0;
    if (normalizer_) {
      scratch->normal.text = part;
      scratch->normal.from_start = true;
      normalizer_->apply(scratch->normal);
      part = scratch->normal.text;
      from_start = from_start && scratch->normal.from_start;
    }
    added_->find(part, true, scratch->parts);
    for (const AddedTokens::Part& each : scratch->parts) {
      if (each.id) {
        ids.push_back(*each.id);
      } else {
        encode_part(part.substr(each.begin, each.end - each.begin), from_start && each.begin == 0, *scratch,
                    ids);
      }
    }
  }
}

void JsonTokenizer::encode_to(std::string_view text, bool special_tokens, std::vector<int32_t>& ids) const {
  for (const Framing::Piece& piece : framing_.single()) {
    if (piece.text) {
      encode_text(text, ids);
    } else if (special_tokens) {
      ids.insert(ids.end(), piece.special.begin(), piece.special.end());
    }
  }
}

PairIds JsonTokenizer::encode_pair(std::string_view first, std::string_view second,
                                   bool special_tokens) const {
  PairIds out;
  for (const Framing::Piece& piece : framing_.pair()) {
    if (piece.text) {
      encode_text(*piece.text == 0 ? first : second, out.ids);
    } else if (special_tokens) {
      out.ids.insert(out.ids.end(), piece.special.begin(), piece.special.end());
    }
    out.types.resize(out.ids.size(), piece.type);
  }
  return out;
}

const std::string* JsonTokenizer::spelled(int32_t id) const {
  const std::string* added = added_->token_of(id);
  return added ? added : model_->token_of(id);
}

std::string JsonTokenizer::decode(std::span<const int32_t> ids, bool skip_special) const {
  std::vector<std::string> tokens;
  tokens.reserve(ids.size());
  for (const int32_t id : ids) {
    const std::string* token = spelled(id);
    if (token && !(skip_special && added_->is_special(*token))) tokens.push_back(*token);
  }
  std::string out;
  if (decoder_) {
    decoder_->apply(tokens);
    for (const std::string& token : tokens) out += token;
    return out;
  }
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (i) out += ' ';
    out += tokens[i];
  }
  return out;
}

std::optional<int32_t> JsonTokenizer::id_of(std::string_view token) const {
  const std::optional<int32_t> added = added_->id_of(token);
  return added ? added : model_->id_of(token);
}

std::optional<std::string> JsonTokenizer::token_of(int32_t id) const {
  const std::string* token = spelled(id);
  if (!token) return std::nullopt;
  return *token;
}

bool JsonTokenizer::is_special(int32_t id) const {
  const std::string* token = added_->token_of(id);
  return token && added_->is_special(*token);
}

// Sequences within sequences are read by recursion.
bool too_deep(std::string_view text) {
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      if (c == '"') quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == '{' || c == '[') {
      if (++depth > kDeepest) return true;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return false;
}

}  // namespace
}  // namespace tok

std::unique_ptr<Tokenizer> Tokenizer::from_json(std::string_view text, const std::string& where) {
  if (tok::too_deep(text))
    throw UserError("{}: more than {} objects and lists within each other", where, tok::kDeepest);
  nlohmann::json value;
  try {
    value = nlohmann::json::parse(text);
  } catch (const nlohmann::json::exception& error) {
    throw UserError("{}: not JSON: {}", where, error.what());
  }
  return std::make_unique<tok::JsonTokenizer>(value, where);
}

}  // namespace lockstep
