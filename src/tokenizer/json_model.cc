#include "tokenizer/json_model.h"

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/printable.h"
#include "tokenizer/bpe.h"
#include "tokenizer/word_models.h"

namespace lockstep::tok {
namespace {

using nlohmann::json;
using Vocab = std::vector<std::pair<std::string, uint32_t>>;

Vocab read_vocab(JsonPart& part) {
  const json& vocab = part.need("vocab");
  if (!vocab.is_object())
    part.refuse("vocab", fmt::format("must be an object of tokens and ids, not {}", vocab.type_name()));
  // Ids are rows of an embedding: a gap here and there, but not of millions.
  const uint64_t most = std::max<uint64_t>(uint64_t{1} << 20, vocab.size() * 8);
  Vocab out;
  out.reserve(vocab.size());
  for (const auto& [token, id] : vocab.items()) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() >= most)
      part.refuse("vocab", fmt::format("has the id {} of '{}'; ids are whole numbers below {}",
                                       printable(id.dump().substr(0, 40)), printable(token), most));
    out.emplace_back(token, id.get<uint32_t>());
  }
  return out;
}

std::vector<std::pair<std::string, std::string>> read_merges(JsonPart& part) {
  const json& merges = part.need("merges");
  if (!merges.is_array()) part.refuse("merges", fmt::format("must be a list, not {}", merges.type_name()));
  std::vector<std::pair<std::string, std::string>> out;
  out.reserve(merges.size());
  for (size_t i = 0; i < merges.size(); ++i) {
    const json& merge = merges[i];
    if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
      out.emplace_back(merge[0].get<std::string>(), merge[1].get<std::string>());
      continue;
    }
    const std::string text = merge.is_string() ? merge.get<std::string>() : "";
    if (text.starts_with("#version")) continue;
    const size_t space = text.find(' ');
    if (space == std::string::npos || text.find(' ', space + 1) != std::string::npos)
      part.refuse(
          "merges",
          fmt::format("[{}] is {}; it must be two tokens, as \"a b\" or [\"a\", \"b\"]", i,
                      printable(merge.dump(-1, ' ', false, json::error_handler_t::replace).substr(0, 80))));
    out.emplace_back(text.substr(0, space), text.substr(space + 1));
  }
  return out;
}

JsonModel make_bpe(JsonPart& part, bool byte_level) {
  BpeSpec spec;
  spec.vocab = read_vocab(part);
  spec.merges = read_merges(part);
  spec.unk_token = part.text("unk_token", "");
  spec.continuing_prefix = part.text("continuing_subword_prefix", "");
  spec.word_suffix = part.text("end_of_word_suffix", "");
  spec.fuse_unk = part.flag("fuse_unk", false);
  spec.byte_fallback = part.flag("byte_fallback", false);
  spec.ignore_merges = part.flag("ignore_merges", false);
  const json* dropout = part.find("dropout");
  if (dropout && !(dropout->is_number() && dropout->get<double>() == 0.0))
    part.refuse("dropout",
                fmt::format("is {}; merges that are left out by chance are not repeatable. Set it to null",
                            printable(dropout->dump().substr(0, 40))));
  JsonModel made;
  made.over_bytes = byte_level && Bpe::can_work_on_bytes(spec);
  auto bpe = std::make_unique<Bpe>(std::move(spec), made.over_bytes, part.where());
  made.bpe = bpe.get();
  made.model = std::move(bpe);
  return made;
}

// The value that the reference has for a number whose shortest spelling is that of `exact`: it divides the
// digits, as one whole number, by a power of ten, and so may miss the nearest double by a bit. Ties between
// tokenizations hang on such bits.
double as_the_reference_reads(double exact) {
  char text[64];
  const auto end =
      std::to_chars(text, text + sizeof text, std::abs(exact), std::chars_format::scientific).ptr;
  uint64_t digits = 0;
  int exponent = 0;
  bool point = false;
  for (const char* c = text; c != end; ++c) {
    if (*c == 'e') {
      int power = 0;
      std::from_chars(c[1] == '+' ? c + 2 : c + 1, end, power);
      exponent += power;
      break;
    }
    if (*c == '.') {
      point = true;
      continue;
    }
    digits = digits * 10 + static_cast<uint64_t>(*c - '0');
    if (point) --exponent;
  }
  if (exponent < -300 || exponent > 300) return exact;
  constexpr double kPowers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
  const auto size = static_cast<size_t>(std::abs(exponent));
  const double power =
      size < std::size(kPowers) ? kPowers[size] : std::strtod(fmt::format("1e{}", size).c_str(), nullptr);
  const auto whole = static_cast<double>(digits);
  const double value = exponent < 0 ? whole / power : whole * power;
  return std::signbit(exact) ? -value : value;
}

std::unique_ptr<WordModel> make_unigram(JsonPart& part) {
  Unigram::Spec spec;
  const json& vocab = part.need("vocab");
  if (!vocab.is_array())
    part.refuse("vocab", fmt::format("must be a list of tokens and scores, not {}", vocab.type_name()));
  for (size_t i = 0; i < vocab.size(); ++i) {
    const json& entry = vocab[i];
    if (!entry.is_array() || entry.size() != 2 || !entry[0].is_string() || !entry[1].is_number())
      part.refuse("vocab", fmt::format("[{}] must be a token and its score", i));
    spec.vocab.emplace_back(entry[0].get<std::string>(), as_the_reference_reads(entry[1].get<double>()));
  }
  if (part.find("unk_id")) spec.unk = static_cast<uint32_t>(part.number("unk_id", 0, (int64_t{1} << 31) - 1));
  spec.byte_fallback = part.flag("byte_fallback", false);
  return std::make_unique<Unigram>(spec, part.where());
}

std::unique_ptr<WordModel> make_word_piece(JsonPart& part) {
  WordPiece::Spec spec;
  spec.vocab = read_vocab(part);
  spec.unk_token = part.text("unk_token");
  spec.prefix = part.text("continuing_subword_prefix");
  spec.longest_word = part.number("max_input_chars_per_word", 0, INT64_MAX);
  return std::make_unique<WordPiece>(std::move(spec), part.where());
}

// Older files do not name the type.
std::string type_of(JsonPart& part) {
  static constexpr std::string_view kKnown[] = {"BPE", "WordPiece", "Unigram", "WordLevel"};
  if (part.find("type")) return part.choice("type", kKnown);
  if (part.find("merges")) return "BPE";
  if (part.need("vocab").is_array()) return "Unigram";
  return part.find("max_input_chars_per_word") ? "WordPiece" : "WordLevel";
}

}  // namespace

JsonModel make_model(JsonPart& part, bool byte_level) {
  const std::string type = type_of(part);
  JsonModel made;
  if (type == "BPE") made = make_bpe(part, byte_level);
  if (type == "Unigram") made.model = make_unigram(part);
  if (type == "WordPiece") made.model = make_word_piece(part);
  if (type == "WordLevel") {
    Vocab vocab = read_vocab(part);
    made.model = std::make_unique<WordLevel>(std::move(vocab), part.text("unk_token"), part.where());
  }
  part.finish();
  return made;
}

}  // namespace lockstep::tok
