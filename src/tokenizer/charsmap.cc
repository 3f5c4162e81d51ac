#include "tokenizer/charsmap.h"

#include <cstring>

#include "base/error.h"
#include "tokenizer/unicode/code_points.h"
#include "tokenizer/utf8.h"

namespace lockstep::tok {
namespace {

// A unit of a darts-clone double array.
constexpr bool has_leaf(uint32_t unit) { return (unit >> 8 & 1) != 0; }
constexpr uint32_t value_of(uint32_t unit) { return unit & 0x7FFFFFFF; }
constexpr uint32_t label_of(uint32_t unit) { return unit & 0x800000FF; }
constexpr uint32_t offset_of(uint32_t unit) { return (unit >> 10) << ((unit & (1u << 9)) >> 6); }

// Calls found(length, value) for every prefix of the text that the array has, the shortest first, until it
// says stop.
template <typename Found>
void for_prefixes(const std::vector<uint32_t>& units, std::string_view text, const Found& found) {
  if (units.empty()) return;
  uint64_t node = offset_of(units[0]);
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte == 0) return;
    node ^= byte;
    if (node >= units.size()) return;
    const uint32_t unit = units[node];
    if (label_of(unit) != byte) return;
    node ^= offset_of(unit);
    if (node >= units.size()) return;
    if (has_leaf(unit) && found(i + 1, value_of(units[node]))) return;
  }
}

}  // namespace

CharsMap::CharsMap(std::string_view bytes, const std::string& where) {
  uint32_t array_bytes = 0;
  if (bytes.size() < 4) throw UserError("{}: a map of characters of {} bytes", where, bytes.size());
  std::memcpy(&array_bytes, bytes.data(), 4);
  if (array_bytes % 4 || array_bytes > bytes.size() - 4)
    throw UserError("{}: a map of characters of {} bytes whose array is said to have {}", where, bytes.size(),
                    array_bytes);
  units_.resize(array_bytes / 4);
  if (array_bytes) std::memcpy(units_.data(), bytes.data() + 4, array_bytes);
  texts_ = std::string(bytes.substr(4 + array_bytes));
  if (!is_utf8(texts_)) throw UserError("{}: a map of characters whose texts are no UTF-8", where);
  for (int c = 0; c < 128; ++c) {
    const char text[] = {static_cast<char>(c)};
    std::string_view replacement;
    plain_[c] = !shortest({text, 1}, replacement);
  }
}

std::string_view CharsMap::text_at(uint32_t offset) const {
  if (offset >= texts_.size()) return {};
  const std::string_view rest = std::string_view(texts_).substr(offset);
  // An offset into the middle of a character, of a damaged map.
  if (is_continuation(rest[0])) return {};
  return rest.substr(0, rest.find('\0'));
}

bool CharsMap::starts(std::string_view bytes) const {
  if (units_.empty()) return false;
  uint64_t node = offset_of(units_[0]);
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    node ^= byte;
    if (byte == 0 || node >= units_.size() || label_of(units_[node]) != byte) return false;
    node ^= offset_of(units_[node]);
  }
  return true;
}

size_t CharsMap::longest(std::string_view text, std::string_view& replacement) const {
  size_t length = 0;
  uint32_t value = 0;
  for_prefixes(units_, text, [&](size_t bytes, uint32_t at) {
    length = bytes;
    value = at;
    return false;
  });
  if (length) replacement = text_at(value);
  return length;
}

bool CharsMap::shortest(std::string_view text, std::string_view& replacement) const {
  bool any = false;
  for_prefixes(units_, text, [&](size_t, uint32_t at) {
    replacement = text_at(at);
    any = true;
    return true;
  });
  return any;
}

// Clusters as far as they matter here: only those of less than six bytes and more than one character are
// looked up whole, so that syllables of Hangul, flags and Indic conjuncts, which are longer, need not be
// known.
size_t CharsMap::cluster_end(std::string_view text, size_t begin) const {
  const CodePoints& points = code_points();
  DecodedChar c = decode_char(text.data() + begin);
  size_t end = begin + c.bytes;
  if (c.value == '\r' && end < text.size() && text[end] == '\n') return end + 1;
  uint32_t flags = points[c.value];
  bool pictographic = (flags & kPictographic) != 0;  // and nothing but joiners since
  while (end < text.size() && !(flags & kJoinsNothing)) {
    const DecodedChar next = decode_char(text.data() + end);
    const uint32_t next_flags = points[next.value];
    const bool joined_picture = pictographic && c.value == 0x200D && next_flags & kPictographic;
    const bool joins =
        next_flags & kJoinsBefore || (flags & kJoinsAfter && !(next_flags & kJoinsNothing)) || joined_picture;
    if (!joins) break;
    pictographic = (pictographic && next_flags & kJoinsBefore) || next_flags & kPictographic;
    c = next;
    flags = next_flags;
    end += next.bytes;
  }
  return end;
}

std::string CharsMap::apply_to_clusters(std::string_view text) const {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const bool alone = i + 1 == text.size() || static_cast<unsigned char>(text[i + 1]) < 0x80;
    if (byte < 0x80 && alone && plain_[byte] && byte != '\r') {
      out.push_back(text[i++]);
      continue;
    }
    const size_t end = cluster_end(text, i);
    std::string_view replacement;
    if (end - i < 6 && shortest(text.substr(i, end - i), replacement)) {
      out.append(replacement);
      i = end;
      continue;
    }
    while (i < end) {
      const size_t bytes = decode_char(text.data() + i).bytes;
      const std::string_view part = text.substr(i, bytes);
      out.append(shortest(part, replacement) ? replacement : part);
      i += bytes;
    }
  }
  return out;
}

std::string from_base64(std::string_view text, const std::string& where) {
  while (!text.empty() && text.back() == '=') text.remove_suffix(1);
  std::string out;
  out.reserve(text.size() / 4 * 3);
  uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    const uint32_t digit = c >= 'A' && c <= 'Z'   ? c - 'A'
                           : c >= 'a' && c <= 'z' ? c - 'a' + 26
                           : c >= '0' && c <= '9' ? c - '0' + 52
                           : c == '+'             ? 62
                           : c == '/'             ? 63
                                                  : 64;
    if (digit == 64) throw UserError("{} is no base64", where);
    bits = bits << 6 | digit;
    if ((count += 6) >= 8) out.push_back(static_cast<char>(bits >> (count -= 8)));
  }
  return out;
}

}  // namespace lockstep::tok
