#include "data/format/csv_record.h"

#include <charconv>
#include <cstring>

#include "data/csv_encoding.h"

namespace lockstep {
namespace {

constexpr double kPowers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                              1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

// Digits and one point: a whole number below 2^53 over a power of ten up to 1e22, both exact as doubles, so
// that one division rounds correctly.
std::optional<double> plain_number(std::string_view field) {
  const char* at = field.data();
  const char* const end = at + field.size();
  const bool negative = at != end && *at == '-';
  at += negative ? 1 : 0;
  if (end - at > 16 || at == end) return {};
  uint64_t digits = 0;
  const char* point = nullptr;
  const char* const begin = at;
  for (; at != end; ++at) {
    const auto digit = static_cast<unsigned char>(*at - '0');
    if (digit <= 9) {
      digits = digits * 10 + digit;
    } else if (*at == '.' && point == nullptr) {
      point = at;
    } else {
      return {};
    }
  }
  // from_chars wants a digit on one side of the point.
  if (point != nullptr && end - begin == 1) return {};
  if (digits > uint64_t{1} << 53) return {};
  const auto after = static_cast<size_t>(point == nullptr ? 0 : end - point - 1);
  const double value = static_cast<double>(digits) / kPowers[after];
  return negative ? -value : value;
}

size_t sequence_length(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead >= 0xc2 && lead <= 0xdf) return 2;
  if (lead >= 0xe0 && lead <= 0xef) return 3;
  if (lead >= 0xf0 && lead <= 0xf4) return 4;
  return 0;
}

}  // namespace

std::string_view CsvLine::raw(size_t field) const {
  const size_t from = field == 0 ? begin : ends[field - 1] + size_t{1};
  size_t to = ends[field];
  if (field + 1 == ends.size() && to > from && text[to - 1] == '\r' && to < text.size()) --to;
  return text.substr(from, to - from);
}

CsvLine line_of(std::string_view text, const CsvScan& scan, size_t line) {
  const uint32_t from = line == 0 ? 0 : scan.lines[line - 1];
  const uint32_t begin = from == 0 ? 0 : scan.ends[from - 1] + 1;
  return {text, begin, std::span(scan.ends).subspan(from, scan.lines[line] - from), scan.quotes};
}

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
  if (const auto value = plain_number(field)) return value;
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
