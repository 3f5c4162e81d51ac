#include "tokenizer/framing.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/printable.h"

namespace lockstep::tok {
namespace {

using nlohmann::json;

constexpr int64_t kMostId = (int64_t{1} << 31) - 1;

Framing::Piece text_piece(int number, int32_t type) {
  Framing::Piece piece;
  piece.text = number;
  piece.type = type;
  return piece;
}

Framing::Piece special_piece(int32_t id, int32_t type) {
  Framing::Piece piece;
  piece.special = {id};
  piece.type = type;
  return piece;
}

// ["[CLS]", 101]
int32_t token_pair(JsonPart& part, std::string_view key) {
  const json& value = part.need(key);
  if (!value.is_array() || value.size() != 2 || !value[1].is_number_unsigned() ||
      value[1].get<uint64_t>() > kMostId)
    part.refuse(key, "must be a token and its id");
  return value[1].get<int32_t>();
}

}  // namespace

Framing::Framing() : single_{text_piece(0, 0)}, pair_{text_piece(0, 0), text_piece(1, 1)} {}

Framing::Framing(JsonPart& part) : Framing() { read(part); }

void Framing::read(JsonPart& part) {
  static constexpr std::string_view kKnown[] = {"TemplateProcessing", "BertProcessing", "RobertaProcessing",
                                                "ByteLevel", "Sequence"};
  const std::string type = part.choice("type", kKnown);
  if (type == "ByteLevel") {
    // Offsets only, which are not kept here.
    part.ignore({"add_prefix_space", "trim_offsets", "use_regex"});
    return part.finish();
  }
  if (type == "Sequence") {
    for (JsonPart& each : part.parts("processors")) read(each);
    return part.finish();
  }
  if (framed_)
    part.refuse("type",
                fmt::format("is '{}', a second frame around the first, which Lockstep does not have", type));
  framed_ = true;
  if (type == "TemplateProcessing") {
    read_template(part);
  } else {
    const int32_t cls = token_pair(part, "cls"), sep = token_pair(part, "sep");
    const bool bert = type == "BertProcessing";
    if (!bert) part.ignore({"trim_offsets", "add_prefix_space"});
    single_ = {special_piece(cls, 0), text_piece(0, 0), special_piece(sep, 0)};
    pair_ = single_;
    if (!bert) pair_.push_back(special_piece(sep, 0));
    pair_.push_back(text_piece(1, bert ? 1 : 0));
    pair_.push_back(special_piece(sep, bert ? 1 : 0));
  }
  part.finish();
}

void Framing::read_template(JsonPart& part) {
  const json& specials = part.need("special_tokens");
  const auto read_pieces = [&](std::string_view key, int texts) {
    std::vector<Piece> pieces;
    for (JsonPart& each : part.parts(key)) {
      Piece piece;
      if (each.find("Sequence")) {
        JsonPart sequence = each.part("Sequence");
        static constexpr std::string_view kNames[] = {"A", "B"};
        piece.text = sequence.choice("id", kNames) == "A" ? 0 : 1;
        if (*piece.text >= texts) sequence.refuse("id", "is 'B' in the template of a single text");
        piece.type = static_cast<int32_t>(sequence.number("type_id", 0, kMostId));
        sequence.finish();
      } else {
        JsonPart special = each.part("SpecialToken");
        const std::string name = special.text("id");
        piece.type = static_cast<int32_t>(special.number("type_id", 0, kMostId));
        special.finish();
        const json* found = specials.is_object() && specials.contains(name) ? &specials[name] : nullptr;
        if (!found || !found->is_object() || !found->contains("ids") || !(*found)["ids"].is_array())
          part.refuse("special_tokens",
                      fmt::format("has no ids of '{}', which {} names", printable(name), key));
        for (const json& id : (*found)["ids"]) {
          if (!id.is_number_unsigned() || id.get<uint64_t>() > kMostId)
            part.refuse("special_tokens", fmt::format("has an id of '{}' that is none", printable(name)));
          piece.special.push_back(id.get<int32_t>());
        }
      }
      each.finish();
      pieces.push_back(std::move(piece));
    }
    return pieces;
  };
  single_ = read_pieces("single", 1);
  pair_ = read_pieces("pair", 2);
}

}  // namespace lockstep::tok
