#include "tokenizer/sentencepiece_normalizer.h"

#include "tokenizer/utf8.h"

namespace lockstep::tok {
namespace {

constexpr std::string_view kMark = "\xE2\x96\x81";

}  // namespace

SentencePieceNormalizer::SentencePieceNormalizer(const NormalizerRules& rules, bool whitespace_as_suffix,
                                                 const Trie* user_defined, const std::string& where)
    : rules_(rules), whitespace_as_suffix_(whitespace_as_suffix), user_defined_(user_defined) {
  if (!rules_.charsmap.empty()) map_.emplace(rules_.charsmap, where);
  for (int byte = 0; byte < 256; ++byte) {
    char text[] = {static_cast<char>(byte), 0};
    std::string_view replacement;
    bool plain = byte > ' ' && byte < 0x80 && !(map_ && map_->longest({text, 1}, replacement)) &&
                 !(user_defined_ && user_defined_->starts_with(static_cast<unsigned char>(byte)));
    for (int next = 1; plain && map_ && next < 0x80; ++next) {
      text[1] = static_cast<char>(next);
      plain = !map_->starts({text, 2});
    }
    plain_[byte] = plain;
  }
}

std::string_view SentencePieceNormalizer::front(std::string_view text, size_t& bytes) const {
  if (user_defined_) {
    bytes = user_defined_->longest(text).first;
    if (bytes) return text.substr(0, bytes);
  }
  std::string_view replacement;
  if (map_) {
    bytes = map_->longest(text, replacement);
    if (bytes) return replacement;
  }
  uint32_t bad = 0;
  bytes = leading_char(text, bad);
  if (bytes) return text.substr(0, bytes);
  bytes = 1;
  return kReplacementChar;
}

void SentencePieceNormalizer::apply(std::string_view text, std::string& out) const {
  out.clear();
  size_t bytes = 0;
  if (rules_.remove_extra_whitespaces) {
    while (!text.empty() && front(text, bytes) == " ") text.remove_prefix(bytes);
  }
  if (text.empty()) return;
  out.reserve(text.size() * 5 / 4 + 8);
  const std::string_view space = rules_.escape_whitespaces ? kMark : " ";
  if (!whitespace_as_suffix_ && rules_.add_dummy_prefix) out.append(space);
  bool after_space = rules_.remove_extra_whitespaces;
  while (!text.empty()) {
    const bool ascii_next = text.size() == 1 || static_cast<unsigned char>(text[1]) < 0x80;
    if (ascii_next && plain_[static_cast<unsigned char>(text[0])]) {
      out.push_back(text[0]);
      text.remove_prefix(1);
      after_space = false;
      continue;
    }
    std::string_view piece = front(text, bytes);
    while (after_space && piece.starts_with(' ')) piece.remove_prefix(1);
    if (!piece.empty()) {
      for (const char c : piece) {
        if (c == ' ') {
          out.append(space);
        } else {
          out.push_back(c);
        }
      }
      after_space = piece.ends_with(' ');
    }
    text.remove_prefix(bytes);
    if (!rules_.remove_extra_whitespaces) after_space = false;
  }
  if (rules_.remove_extra_whitespaces) {
    while (out.ends_with(space)) out.erase(out.size() - space.size());
  }
  if (whitespace_as_suffix_ && rules_.add_dummy_prefix) out.append(space);
}

}  // namespace lockstep::tok
