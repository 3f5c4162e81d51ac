#include "tokenizer/sentencepiece_file.h"

#include <cstring>
#include <optional>

#include "base/error.h"
#include "base/printable.h"
#include "tokenizer/utf8.h"

namespace lockstep::tok {
namespace {

// The fields of one message, in the order of the file.
class ProtoFields {
 public:
  ProtoFields(std::string_view bytes, const std::string& where) : rest_(bytes), where_(where) {}

  struct Field {
    uint32_t number;
    uint64_t value = 0;      // of varints and fixed ones
    std::string_view bytes;  // of strings and messages
  };

  std::optional<Field> next() {
    if (rest_.empty()) return std::nullopt;
    const uint64_t tag = varint();
    Field field{static_cast<uint32_t>(tag >> 3), 0, {}};
    switch (tag & 7) {
      case 0: field.value = varint(); break;
      case 1: field.bytes = take(8); break;
      case 2: field.bytes = take(varint()); break;
      case 5: {
        field.bytes = take(4);
        uint32_t bits = 0;
        std::memcpy(&bits, field.bytes.data(), 4);
        field.value = bits;
        break;
      }
      default: fail();
    }
    return field;
  }

 private:
  [[noreturn]] void fail() const {
    throw UserError("{}: not a SentencePiece model, or a damaged one", where_);
  }
  std::string_view take(uint64_t count) {
    if (count > rest_.size()) fail();
    const std::string_view bytes = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return bytes;
  }
  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(1)[0]);
      value |= uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) return value;
    }
    fail();
  }

  std::string_view rest_;
  const std::string& where_;
};

SentencePieceEntry read_piece(std::string_view bytes, size_t index, const std::string& where) {
  SentencePieceEntry piece;
  ProtoFields fields(bytes, where);
  while (const auto field = fields.next()) {
    if (field->number == 1) piece.text = field->bytes;
    if (field->number == 2) {
      const auto bits = static_cast<uint32_t>(field->value);
      std::memcpy(&piece.score, &bits, 4);
    }
    if (field->number == 3) {
      if (field->value < 1 || field->value > 6)
        throw UserError("{}: piece {} is of type {}, which Lockstep does not know", where, index,
                        field->value);
      piece.type = static_cast<PieceType>(field->value);
    }
  }
  if (piece.text.empty()) throw UserError("{}: piece {} is empty", where, index);
  if (!is_utf8(piece.text))
    throw UserError("{}: piece {} is no UTF-8: '{}'", where, index, printable(piece.text));
  if (piece.score != piece.score) throw UserError("{}: piece {} has no number as its score", where, index);
  return piece;
}

void read_trainer(std::string_view bytes, SentencePieceFile& file, const std::string& where) {
  ProtoFields fields(bytes, where);
  while (const auto field = fields.next()) {
    switch (field->number) {
      case 3:
        if (field->value != 1 && field->value != 2)
          throw UserError("{}: a SentencePiece model of type {}; Lockstep has 1, unigram, and 2, BPE", where,
                          field->value);
        file.kind = static_cast<SentencePieceFile::Kind>(field->value);
        break;
      case 24: file.whitespace_as_suffix = field->value != 0; break;
      case 35: file.byte_fallback = field->value != 0; break;
      case 44: file.unk_surface = field->bytes; break;
      case 46: file.bos_piece = field->bytes; break;
      case 47: file.eos_piece = field->bytes; break;
      case 48: file.pad_piece = field->bytes; break;
      default: break;  // how it was trained
    }
  }
}

NormalizerRules read_rules(std::string_view bytes, const std::string& where) {
  NormalizerRules rules;
  ProtoFields fields(bytes, where);
  while (const auto field = fields.next()) {
    if (field->number == 2) rules.charsmap = field->bytes;
    if (field->number == 3) rules.add_dummy_prefix = field->value != 0;
    if (field->number == 4) rules.remove_extra_whitespaces = field->value != 0;
    if (field->number == 5) rules.escape_whitespaces = field->value != 0;
  }
  return rules;
}

}  // namespace

SentencePieceFile SentencePieceFile::parse(std::string_view bytes, const std::string& where) {
  SentencePieceFile file;
  ProtoFields fields(bytes, where);
  while (const auto field = fields.next()) {
    if (field->number == 1) file.pieces.push_back(read_piece(field->bytes, file.pieces.size(), where));
    if (field->number == 2) read_trainer(field->bytes, file, where);
    if (field->number == 3) file.normalizer = read_rules(field->bytes, where);
    if (field->number == 5) {
      file.denormalizer = read_rules(field->bytes, where);
      file.has_denormalizer = !file.denormalizer.charsmap.empty();
    }
  }
  if (file.pieces.empty()) throw UserError("{}: a SentencePiece model without pieces", where);
  return file;
}

}  // namespace lockstep::tok
