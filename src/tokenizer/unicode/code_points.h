// What the reference tokenizer knows of each code point (make_tables.py), and the normal forms made from it.
//
// Several versions of Unicode meet here, each where the reference has it: see make_tables.py.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::tok {

enum class Category : uint8_t {
  kCc,
  kCf,
  kCn,
  kCo,
  kCs,
  kLl,
  kLm,
  kLo,
  kLt,
  kLu,
  kMc,
  kMe,
  kMn,
  kNd,
  kNl,
  kNo,  //
  kPc,
  kPd,
  kPe,
  kPf,
  kPi,
  kPo,
  kPs,
  kSc,
  kSk,
  kSm,
  kSo,
  kZl,
  kZp,
  kZs
};
inline constexpr int kCategories = 30;

// A code point's entry: the category in the low five bits, the combining class in bits 16 to 23, and these.
enum CodePointFlag : uint32_t {
  kNumeric = 1u << 5,        // char::is_numeric of Rust
  kWordChar = 1u << 6,       // \w of Rust's regex
  kPunctuation = 1u << 7,    // of BertPreTokenizer and Punctuation
  kControlChar = 1u << 8,    // that BertNormalizer drops
  kNonspacing = 1u << 9,     // marks that BertNormalizer drops
  kCombining = 1u << 10,     // marks that StripAccents drops
  kJoinsBefore = 1u << 11,   // in one grapheme cluster with what stands before it
  kJoinsAfter = 1u << 12,    // and with what follows
  kJoinsNothing = 1u << 13,  // controls, and the ends of lines
  kPictographic = 1u << 14,
  kSpaceChar = 1u << 15,
  kHasCanonical = 1u << 24,  // a canonical decomposition
  kHasCompatible = 1u << 25,
  kHan = 1u << 26,
  kHiragana = 1u << 27,
  kKatakana = 1u << 28,
  kHangul = 1u << 29,
  kMayCompose = 1u << 30,           // may differ in NFC
  kMayComposeCompatible = 1u << 31  // may differ in NFKC
};

// The entries of all code points. Looked up for every character of a text: blocks of 256 entries, equal
// blocks once.
class CodePoints {
 public:
  CodePoints();

  uint32_t operator[](char32_t c) const { return entries_[size_t{blocks_[c >> 8]} << 8 | (c & 0xFF)]; }
  Category category(char32_t c) const { return static_cast<Category>((*this)[c] & 0x1F); }
  uint8_t combining_class(char32_t c) const { return static_cast<uint8_t>((*this)[c] >> 16); }

 private:
  uint16_t blocks_[0x1100];
  std::vector<uint32_t> entries_;
};

const CodePoints& code_points();

enum class NormalForm : uint8_t { kNfc, kNfd, kNfkc, kNfkd };

// Of valid UTF-8.
std::string normalized(std::string_view text, NormalForm form);
std::string lowercased(std::string_view text);

}  // namespace lockstep::tok
