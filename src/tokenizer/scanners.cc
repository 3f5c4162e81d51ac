#include "tokenizer/scanners.h"

#include <memory>

#include "tokenizer/unicode/code_points.h"
#include "tokenizer/utf8.h"

namespace lockstep::tok {
namespace {

enum CharClass : uint8_t {
  kLetter = 1,
  kNumber = 2,
  kSpace = 4,
  kNewline = 8,  // \r or \n; also kSpace
  kUpper = 16,   // Lu Lt Lm Lo M
  kLower = 32,   // Ll Lm Lo M
};
constexpr uint8_t kNotOther = kLetter | kNumber | kSpace;

class CharClasses {
 public:
  CharClasses() {
    const CodePoints& points = code_points();
    for (char32_t c = 0; c < std::size(classes_); ++c) classes_[c] = of(points, c);
    for (char32_t c = 0; c < 0x80; ++c) ascii_[c] = classes_[c];
  }

  // Of the character at `at`, and its length.
  uint8_t at(const char* p, uint32_t& bytes) const {
    const auto first = static_cast<unsigned char>(*p);
    if (first < 0x80) {
      bytes = 1;
      return ascii_[first];
    }
    const DecodedChar c = decode_char(p);
    bytes = c.bytes;
    return c.value < std::size(classes_) ? classes_[c.value] : of(code_points(), c.value);
  }

 private:
  static uint8_t of(const CodePoints& points, char32_t c) {
    const uint32_t flags = points[c];
    uint8_t out = flags & kSpaceChar ? kSpace : 0;
    switch (static_cast<Category>(flags & 0x1F)) {
      case Category::kLu:
      case Category::kLt: out |= kLetter | kUpper; break;
      case Category::kLl: out |= kLetter | kLower; break;
      case Category::kLm:
      case Category::kLo: out |= kLetter | kUpper | kLower; break;
      case Category::kMc:
      case Category::kMe:
      case Category::kMn: out |= kUpper | kLower; break;
      case Category::kNd:
      case Category::kNl:
      case Category::kNo: out |= kNumber; break;
      default: break;
    }
    if (c == '\r' || c == '\n') out |= kNewline;
    return out;
  }

  uint8_t ascii_[0x80];
  uint8_t classes_[0x20000];
};

const CharClasses& char_classes() {
  static const auto classes = std::make_unique<CharClasses>();
  return *classes;
}

// One text being cut.
class Cursor {
 public:
  Cursor(std::string_view text, uint32_t end) : text_(text.data()), end_(end), classes_(char_classes()) {}

  uint8_t at(uint32_t i, uint32_t& bytes) const { return classes_.at(text_ + i, bytes); }
  // 0 at the end.
  uint8_t at(uint32_t i) const {
    uint32_t bytes = 0;
    return i < end_ ? classes_.at(text_ + i, bytes) : 0;
  }
  char byte(uint32_t i) const { return i < end_ ? text_[i] : '\0'; }
  uint32_t end() const { return end_; }

  // Behind the characters that have one of the classes.
  uint32_t run(uint32_t i, uint8_t any) const {
    uint32_t bytes = 0;
    while (i < end_ && classes_.at(text_ + i, bytes) & any) i += bytes;
    return i;
  }
  // Behind those that have none.
  uint32_t run_without(uint32_t i, uint8_t none) const {
    uint32_t bytes = 0;
    while (i < end_ && !(classes_.at(text_ + i, bytes) & none)) i += bytes;
    return i;
  }
  // \s+(?!\S)|\s+ at a space: all of them at the end of the text, otherwise all but the last, which begins
  // the next word.
  uint32_t spaces(uint32_t i) const {
    uint32_t bytes = 0, last = i, at_i = i;
    while (at_i < end_ && classes_.at(text_ + at_i, bytes) & kSpace) {
      last = at_i;
      at_i += bytes;
    }
    return at_i == end_ || last == i ? at_i : last;
  }
  // \s*[\r\n]+ at a space: behind the last newline of the run; i if there is none.
  uint32_t newlines(uint32_t i) const {
    uint32_t bytes = 0, found = i;
    for (uint8_t c = 0; i < end_ && (c = classes_.at(text_ + i, bytes)) & kSpace;) {
      i += bytes;
      if (c & kNewline) found = i;
    }
    return found;
  }
  // 's|'t|'re|'ve|'m|'ll|'d at an apostrophe, in any case if `fold`: the end, or i.
  uint32_t contraction(uint32_t i, bool fold) const {
    const auto letter = [&](uint32_t at) {
      const char c = byte(at);
      return fold && c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
    };
    const char a = letter(i + 1), b = letter(i + 2);
    if (a == 's' || a == 't' || a == 'm' || a == 'd') return i + 2;
    if ((a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l')) return i + 3;
    // U+017F, the long s, is an s in any case.
    if (fold && byte(i + 1) == '\xC5' && byte(i + 2) == '\xBF') return i + 3;
    return i;
  }

 private:
  const char* text_;
  uint32_t end_;
  const CharClasses& classes_;
};

uint32_t next_gpt2(const Cursor& cursor, uint32_t i) {
  if (cursor.byte(i) == '\'') {
    const uint32_t end = cursor.contraction(i, false);
    if (end > i) return end;
  }
  uint32_t bytes = 0;
  uint8_t c = cursor.at(i, bytes);
  uint32_t word = i;
  if (cursor.byte(i) == ' ' && i + 1 < cursor.end()) {
    c = cursor.at(i + 1, bytes);
    word = i + 1;
  }
  if (c & kLetter) return cursor.run(word + bytes, kLetter);
  if (c & kNumber) return cursor.run(word + bytes, kNumber);
  if (!(c & kSpace)) return cursor.run_without(word + bytes, kNotOther);
  return cursor.spaces(i);
}

// From ` ?[^\s\p{L}\p{N}]+[\r\n]*` on, where `c` is the class at i; `slash`: with a slash among the newlines.
uint32_t next_rest(const Cursor& cursor, uint32_t i, uint8_t c, bool slash) {
  const bool space_first = cursor.byte(i) == ' ' && i + 1 < cursor.end();
  if (!(c & kNotOther) || (space_first && !(cursor.at(i + 1) & kNotOther))) {
    uint32_t end = cursor.run_without(i + (space_first ? 1 : 0), kNotOther);
    while (cursor.byte(end) == '\n' || cursor.byte(end) == '\r' || (slash && cursor.byte(end) == '/')) ++end;
    return end;
  }
  const uint32_t newline = cursor.newlines(i);
  return newline > i ? newline : cursor.spaces(i);
}

template <int kDigits>
uint32_t digits(const Cursor& cursor, uint32_t i) {
  uint32_t bytes = 0;
  for (int digit = 0; digit < kDigits && i < cursor.end() && cursor.at(i, bytes) & kNumber; ++digit)
    i += bytes;
  return i;
}

template <int kDigits>
uint32_t next_llama3(const Cursor& cursor, uint32_t i) {
  if (cursor.byte(i) == '\'') {
    const uint32_t end = cursor.contraction(i, true);
    if (end > i) return end;
  }
  uint32_t bytes = 0;
  const uint8_t c = cursor.at(i, bytes);
  if (c & kLetter) return cursor.run(i + bytes, kLetter);
  if (c & kNumber) return digits<kDigits>(cursor, i);
  if (!(c & kNewline) && cursor.at(i + bytes) & kLetter) return cursor.run(i + bytes, kLetter);
  return next_rest(cursor, i, c, false);
}

// Upper* Lower+ from i on, with the backtracking of a regular expression: i if it does not match.
uint32_t camel_word(const Cursor& cursor, uint32_t i, uint32_t& upper_end) {
  uint32_t end = i, both_end = i, bytes = 0;
  for (uint8_t c = 0; end < cursor.end() && (c = cursor.at(end, bytes)) & kUpper;) {
    end += bytes;
    if (c & kLower) both_end = end;
  }
  upper_end = end;
  if (cursor.at(end) & kLower) return cursor.run(end, kLower);
  return both_end;  // the last upper character that is a lower one too is given back
}

// A word of either alternative, with the character in front of it if that is no letter: i if there is none.
uint32_t camel_word_with_prefix(const Cursor& cursor, uint32_t i, uint8_t c, uint32_t bytes) {
  uint32_t upper_end = 0;
  if (c & kLetter) {
    const uint32_t end = camel_word(cursor, i, upper_end);
    return end > i ? end : upper_end;
  }
  if (c & (kNumber | kNewline)) return i;
  const uint32_t word = i + bytes;
  const uint32_t end = camel_word(cursor, word, upper_end);
  if (end > word) return end;
  const uint32_t upper = upper_end;
  const uint32_t bare = camel_word(cursor, i, upper_end);
  return bare > i ? bare : upper > word ? upper : i;
}

template <int kDigits, bool kContraction>
uint32_t next_tekken(const Cursor& cursor, uint32_t i) {
  uint32_t bytes = 0;
  const uint8_t c = cursor.at(i, bytes);
  const uint32_t end = camel_word_with_prefix(cursor, i, c, bytes);
  if (end > i) return kContraction && cursor.byte(end) == '\'' ? cursor.contraction(end, true) : end;
  if (c & kNumber) return digits<kDigits>(cursor, i);
  return next_rest(cursor, i, c, true);
}

template <uint32_t (*kNext)(const Cursor&, uint32_t)>
void scan(std::string_view text, TextRange range, std::vector<TextRange>& words) {
  const Cursor cursor(text, range.end);
  for (uint32_t i = range.begin; i < range.end;) {
    const uint32_t end = kNext(cursor, i);
    words.push_back({i, end});
    i = end;
  }
}

}  // namespace

void scan_gpt2(std::string_view text, TextRange range, std::vector<TextRange>& words) {
  scan<next_gpt2>(text, range, words);
}

Scanner scanner_for(std::string_view pattern) {
  if (pattern == kGpt2Pattern) return scan<next_gpt2>;
  if (pattern == kLlama3Pattern) return scan<next_llama3<3>>;
  if (pattern == kQwen2Pattern) return scan<next_llama3<1>>;
  if (pattern == kCl100kPattern) return scan<next_llama3<3>>;
  if (pattern == kTekkenPattern) return scan<next_tekken<1, false>>;
  if (pattern == kO200kPattern) return scan<next_tekken<3, true>>;
  return nullptr;
}

}  // namespace lockstep::tok
