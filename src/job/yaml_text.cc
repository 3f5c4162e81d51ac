#include "job/yaml_text.h"

#include <algorithm>
#include <cstddef>

#include "base/error.h"

namespace lockstep {
namespace {

// The length of the UTF-8 sequence that starts here, or 0. Overlong forms and surrogates are refused.
size_t utf8_length(std::string_view rest) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(rest[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  const size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || rest.size() < length) return 0;
  for (size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xC0) != 0x80) return 0;
  if (lead == 0xE0 && byte(1) < 0xA0) return 0;
  if (lead == 0xED && byte(1) > 0x9F) return 0;
  if (lead == 0xF0 && byte(1) < 0x90) return 0;
  if (lead == 0xF4 && byte(1) > 0x8F) return 0;
  return length;
}

bool is_control(unsigned char c) { return (c < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7F; }

void check_characters(std::string_view text, const std::string& source) {
  if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF"))
    throw UserError("{}:1: the text is UTF-16; save it as UTF-8", source);
  int line = 1;
  for (size_t i = 0; i < text.size();) {
    const unsigned char c = static_cast<unsigned char>(text[i]);
    if (is_control(c))
      throw UserError(
          "{}:{}: a byte 0x{:02x} stands in the text, so this is not a job file; write plain UTF-8 text",
          source, line, c);
    const size_t length = utf8_length(text.substr(i));
    if (length == 0)
      throw UserError("{}:{}: a byte 0x{:02x} is not UTF-8; save the file as UTF-8 text", source, line, c);
    if (c == '\n') ++line;
    i += length;
  }
}

void check_indentation(std::string_view text, const std::string& source) {
  int line = 1;
  for (size_t begin = 0; begin < text.size(); ++line) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view row = text.substr(begin, end - begin);
    const size_t content = row.find_first_not_of(" \t\r");
    if (content != std::string_view::npos && row.substr(0, content).find('\t') != std::string_view::npos)
      throw UserError("{}:{}: the line is indented with a tab; write spaces, two per level", source, line);
    begin = end + 1;
  }
}

}  // namespace

void check_yaml_text(std::string_view text, const std::string& source, const YamlLimits& limits) {
  if (static_cast<int64_t>(text.size()) > limits.bytes)
    throw UserError("{}: more than {} bytes are too many; write less", source, limits.bytes);
  check_characters(text, source);
  check_indentation(text, source);
}

}  // namespace lockstep
