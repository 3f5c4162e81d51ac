#include "base/printable.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace lockstep {
namespace {

// How long the character is that begins with this byte; 0: none does.
size_t length_of(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead >= 0xc2 && lead <= 0xdf) return 2;
  if (lead >= 0xe0 && lead <= 0xef) return 3;
  if (lead >= 0xf0 && lead <= 0xf4) return 4;
  return 0;
}

bool continues(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

uint32_t code_of(std::string_view character) {
  constexpr std::array<unsigned, 5> kLeadBits{0, 0x7f, 0x1f, 0x0f, 0x07};
  uint32_t code = static_cast<unsigned char>(character[0]) & kLeadBits[character.size()];
  for (const char c : character.substr(1)) code = (code << 6) | (static_cast<unsigned char>(c) & 0x3f);
  return code;
}

// C0 and C1 controls, DEL, marks and overrides of direction, separators of lines and paragraphs, and what is
// no character: surrogates, longer than need be, beyond the last.
bool is_unfit(uint32_t code, size_t length) {
  constexpr std::array<uint32_t, 5> kLeast{0, 0, 0x80, 0x800, 0x10000};
  return code < 0x20 || (code >= 0x7f && code <= 0x9f) || code == 0x61c || code == 0x200e || code == 0x200f ||
         (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069) || code == 0xfeff ||
         (code >= 0xd800 && code <= 0xdfff) || code > 0x10ffff || code < kLeast[length];
}

// The bytes at the end that may be the beginning of a character.
size_t incomplete(std::string_view text) {
  for (size_t back = 1; back <= std::min<size_t>(3, text.size()); ++back) {
    const char c = text[text.size() - back];
    if (continues(c)) continue;
    return length_of(static_cast<unsigned char>(c)) > back ? back : 0;
  }
  return 0;
}

// The character at the front; its first byte where the bytes make none.
std::string_view character_at_front(std::string_view text) {
  const size_t length = length_of(static_cast<unsigned char>(text[0]));
  if (length == 0 || length > text.size()) return text.substr(0, 1);
  const std::string_view character = text.substr(0, length);
  return std::all_of(character.begin() + 1, character.end(), continues) ? character : text.substr(0, 1);
}

bool is_fit(std::string_view character) {
  return length_of(static_cast<unsigned char>(character[0])) == character.size() &&
         !is_unfit(code_of(character), character.size());
}

std::string shown(std::string_view text, bool lines) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::string_view character = character_at_front(text);
    text.remove_prefix(character.size());
    if (character == "\n" || character == "\t")
      out += lines ? character : " ";
    else
      out += is_fit(character) ? character : "?";
  }
  return out;
}

}  // namespace

std::string printable(std::string_view text) { return shown(text, false); }
std::string printable_lines(std::string_view text) { return shown(text, true); }

bool PrintableBuffer::pass(std::string_view text) {
  waiting_ += text;
  const size_t kept = incomplete(waiting_);
  const std::string out = printable_lines(std::string_view(waiting_).substr(0, waiting_.size() - kept));
  waiting_.erase(0, waiting_.size() - kept);
  const auto count = static_cast<std::streamsize>(out.size());
  return to_.sputn(out.data(), count) == count;
}

PrintableBuffer::int_type PrintableBuffer::overflow(int_type c) {
  if (traits_type::eq_int_type(c, traits_type::eof())) return traits_type::not_eof(c);
  const char one = traits_type::to_char_type(c);
  return pass({&one, 1}) ? c : traits_type::eof();
}

std::streamsize PrintableBuffer::xsputn(const char* text, std::streamsize count) {
  return pass({text, static_cast<size_t>(count)}) ? count : 0;
}

int PrintableBuffer::sync() { return to_.pubsync(); }

}  // namespace lockstep
