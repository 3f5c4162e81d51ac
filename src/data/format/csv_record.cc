#include "data/format/csv_record.h"

#include <charconv>
#include <cstring>

#include "data/format/decimal.h"
#include "data/table_encoding.h"

namespace lockstep {
namespace {

size_t sequence_length(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead >= 0xc2 && lead <= 0xdf) return 2;
  if (lead >= 0xe0 && lead <= 0xef) return 3;
  if (lead >= 0xf0 && lead <= 0xf4) return 4;
  return 0;
}

}  // namespace

const char* problem_of(std::string_view raw) {
  if (raw.empty() || raw[0] != '"') {
    return raw.find('"') == std::string_view::npos
               ? nullptr
               : "a quote inside a field; put the field in quotes and double the quote: \"a \"\"b\"\"\"";
  }
  for (size_t i = 1; i < raw.size(); ++i) {
    if (raw[i] != '"') continue;
    if (i + 1 == raw.size()) return nullptr;
    if (raw[i + 1] != '"') return "text follows a closing quote; end the field with a comma or a new line";
    ++i;
  }
  return "the quote that opens here is never closed; add the closing quote";
}

std::string_view unquote(std::string_view raw, std::string& unescaped) {
  if (raw.empty() || raw[0] != '"') return raw;
  const std::string_view inside = raw.substr(1, raw.size() - 2);
  if (inside.find('"') == std::string_view::npos) return inside;
  unescaped.clear();
  for (size_t i = 0; i < inside.size(); ++i) {
    unescaped += inside[i];
    if (inside[i] == '"') ++i;
  }
  return unescaped;
}

std::optional<double> number_of(std::string_view field) {
  if (const auto value = decimal_of(field)) return value;
  return parse_number(field);
}

std::optional<int64_t> integer_of(std::string_view field) {
  if (field.size() > 1 && field[0] == '+' && field[1] != '-') field.remove_prefix(1);
  int64_t value = 0;
  const auto [end, failure] = std::from_chars(field.data(), field.data() + field.size(), value);
  if (failure != std::errc() || end != field.data() + field.size()) return {};
  return value;
}

bool is_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const size_t length = sequence_length(lead);
    if (length == 0 || length > text.size() - i) return false;
    for (size_t k = 1; k < length; ++k)
      if ((static_cast<unsigned char>(text[i + k]) & 0xc0) != 0x80) return false;
    if (length > 2) {
      // Longer than need be, surrogates, and beyond the last character.
      const auto second = static_cast<unsigned char>(text[i + 1]);
      if ((lead == 0xe0 && second < 0xa0) || (lead == 0xed && second > 0x9f) ||
          (lead == 0xf0 && second < 0x90) || (lead == 0xf4 && second > 0x8f))
        return false;
    }
    i += length;
  }
  return true;
}

}  // namespace lockstep
