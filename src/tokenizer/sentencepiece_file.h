// A SentencePiece .model file: the pieces, the kind of model, and how text is normalized. Protocol buffers,
// read by hand: four message types of a stable format.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::tok {

enum class PieceType : uint8_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6
};

struct SentencePieceEntry {
  std::string text;
  float score = 0;
  PieceType type = PieceType::kNormal;
};

struct NormalizerRules {
  std::string charsmap;
  bool add_dummy_prefix = true;
  bool remove_extra_whitespaces = true;
  bool escape_whitespaces = true;
};

struct SentencePieceFile {
  enum class Kind : uint8_t { kUnigram = 1, kBpe = 2 };

  std::vector<SentencePieceEntry> pieces;
  Kind kind = Kind::kUnigram;
  bool byte_fallback = false;
  bool whitespace_as_suffix = false;
  std::string unk_surface = " \xE2\x81\x87 ";
  std::string bos_piece = "<s>", eos_piece = "</s>", pad_piece = "<pad>";
  NormalizerRules normalizer, denormalizer;
  bool has_denormalizer = false;

  // `where` names the file in errors.
  static SentencePieceFile parse(std::string_view bytes, const std::string& where);
};

}  // namespace lockstep::tok
