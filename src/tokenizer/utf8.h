// UTF-8 as bytes in memory: reading valid text, writing, and making text valid.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep::tok {

struct DecodedChar {
  char32_t value;
  uint32_t bytes;
};

// The character at p, of text that is known to be valid.
inline DecodedChar decode_char(const char* p) {
  const auto byte = [p](int i) { return static_cast<char32_t>(static_cast<unsigned char>(p[i])); };
  const char32_t first = byte(0);
  if (first < 0x80) return {first, 1};
  if (first < 0xE0) return {(first & 0x1F) << 6 | (byte(1) & 0x3F), 2};
  if (first < 0xF0) return {(first & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F), 3};
  return {(first & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F), 4};
}

inline uint32_t char_bytes(char32_t c) { return c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4; }

inline bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

void append_char(std::string& text, char32_t c);

// How many bytes the character at the front of `text` has; 0 if the bytes there are none, and then `bad` is
// the length of what one U+FFFD stands for (the maximal subpart of a character, as Python and Rust count it).
uint32_t leading_char(std::string_view text, uint32_t& bad);

bool is_utf8(std::string_view text);
// Each maximal subpart that is no character becomes U+FFFD.
std::string with_replacements(std::string_view text);
// The characters of valid text.
std::u32string to_chars(std::string_view text);
std::string from_chars(std::u32string_view chars);

inline constexpr std::string_view kReplacementChar = "\xEF\xBF\xBD";

}  // namespace lockstep::tok
