#include "tokenizer/utf8.h"

#include <cstring>

namespace lockstep::tok {

void append_char(std::string& text, char32_t c) {
  if (c < 0x80) {
    text.push_back(static_cast<char>(c));
    return;
  }
  const uint32_t bytes = char_bytes(c);
  char out[4];
  for (uint32_t i = bytes - 1; i > 0; --i) {
    out[i] = static_cast<char>(0x80 | (c & 0x3F));
    c >>= 6;
  }
  out[0] = static_cast<char>((bytes == 2 ? 0xC0 : bytes == 3 ? 0xE0 : 0xF0) | c);
  text.append(out, bytes);
}

uint32_t leading_char(std::string_view text, uint32_t& bad) {
  const auto byte = [text](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  bad = 1;
  if (first < 0x80) return 1;
  uint32_t bytes = 0;
  unsigned char low = 0x80, high = 0xBF;  // of the second byte
  if (first >= 0xC2 && first <= 0xDF) {
    bytes = 2;
  } else if (first >= 0xE0 && first <= 0xEF) {
    bytes = 3;
    if (first == 0xE0) low = 0xA0;
    if (first == 0xED) high = 0x9F;
  } else if (first >= 0xF0 && first <= 0xF4) {
    bytes = 4;
    if (first == 0xF0) low = 0x90;
    if (first == 0xF4) high = 0x8F;
  } else {
    return 0;
  }
  if (text.size() < 2 || byte(1) < low || byte(1) > high) return 0;
  for (uint32_t i = 2; i < bytes; ++i) {
    bad = i;
    if (text.size() <= i || !is_continuation(text[i])) return 0;
  }
  return bytes;
}

bool is_utf8(std::string_view text) {
  size_t i = 0;
  while (i < text.size()) {
    uint64_t word = 0;
    while (i + 8 <= text.size()) {
      std::memcpy(&word, text.data() + i, 8);
      if (word & 0x8080808080808080u) break;
      i += 8;
    }
    if (i == text.size()) break;
    uint32_t bad = 0;
    const uint32_t bytes = leading_char(text.substr(i), bad);
    if (bytes == 0) return false;
    i += bytes;
  }
  return true;
}

std::string with_replacements(std::string_view text) {
  std::string out;
  out.reserve(text.size() + text.size() / 8);
  while (!text.empty()) {
    uint32_t bad = 0;
    const uint32_t bytes = leading_char(text, bad);
    out.append(bytes ? text.substr(0, bytes) : kReplacementChar);
    text.remove_prefix(bytes ? bytes : bad);
  }
  return out;
}

std::u32string to_chars(std::string_view text) {
  std::u32string chars;
  chars.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const DecodedChar c = decode_char(text.data() + i);
    chars.push_back(c.value);
    i += c.bytes;
  }
  return chars;
}

std::string from_chars(std::u32string_view chars) {
  std::string text;
  text.reserve(chars.size());
  for (const char32_t c : chars) append_char(text, c);
  return text;
}

}  // namespace lockstep::tok
