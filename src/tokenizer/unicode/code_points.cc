#include "tokenizer/unicode/code_points.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "tokenizer/utf8.h"

namespace lockstep::tok {
namespace {

#include "tokenizer/unicode/tables.inc"

// Hangul syllables are made of their parts by arithmetic (The Unicode Standard, 3.12).
constexpr char32_t kSyllables = 0xAC00, kLeading = 0x1100, kVowels = 0x1161, kTrailing = 0x11A7;
constexpr char32_t kLeadingCount = 19, kVowelCount = 21, kTrailingCount = 28;
constexpr char32_t kSyllableCount = kLeadingCount * kVowelCount * kTrailingCount;

// Code point to a text of several; the entries of a table are a code point with the count in its upper bits,
// and that many code points.
class CharTexts {
 public:
  // Of kinds named in the set of bits.
  template <size_t N>
  CharTexts(const uint32_t (&table)[N], uint32_t kinds) {
    for (size_t i = 0; i < N;) {
      const uint32_t head = table[i++];
      const uint32_t count = head >> 21 & 0x1F;
      if (kinds >> (head >> 30) & 1) {
        spans_[head & 0x1FFFFF] = {static_cast<uint32_t>(chars_.size()), count};
        for (uint32_t j = 0; j < count; ++j) chars_.push_back(table[i + j]);
      }
      i += count;
    }
  }

  std::u32string_view operator[](char32_t c) const {
    const auto found = spans_.find(c);
    if (found == spans_.end()) return {};
    return std::u32string_view(chars_).substr(found->second.first, found->second.second);
  }

 private:
  std::unordered_map<char32_t, std::pair<uint32_t, uint32_t>> spans_;
  std::u32string chars_;
};

class Compositions {
 public:
  Compositions() {
    for (size_t i = 0; i < std::size(kCompositions); i += 3)
      pairs_[uint64_t{kCompositions[i]} << 32 | kCompositions[i + 1]] = kCompositions[i + 2];
  }

  // 0 where the two do not compose.
  char32_t operator()(char32_t first, char32_t second) const {
    if (first - kLeading < kLeadingCount && second - kVowels < kVowelCount)
      return kSyllables + ((first - kLeading) * kVowelCount + (second - kVowels)) * kTrailingCount;
    if (first - kSyllables < kSyllableCount && (first - kSyllables) % kTrailingCount == 0 &&
        second > kTrailing && second < kTrailing + kTrailingCount)
      return first + (second - kTrailing);
    const auto found = pairs_.find(uint64_t{first} << 32 | second);
    return found == pairs_.end() ? 0 : found->second;
  }

 private:
  std::unordered_map<uint64_t, char32_t> pairs_;
};

void append_decomposed(char32_t c, bool compatible, std::u32string& out) {
  static const CharTexts canonical(kDecompositions, 1u << 1);
  static const CharTexts compatibility(kDecompositions, 1u << 1 | 1u << 2);
  if (c - kSyllables < kSyllableCount) {
    const char32_t index = c - kSyllables;
    out.push_back(kLeading + index / (kVowelCount * kTrailingCount));
    out.push_back(kVowels + index % (kVowelCount * kTrailingCount) / kTrailingCount);
    if (index % kTrailingCount) out.push_back(kTrailing + index % kTrailingCount);
    return;
  }
  const uint32_t flags = code_points()[c];
  if (!(flags & (compatible ? kHasCompatible : kHasCanonical))) {
    out.push_back(c);
    return;
  }
  out.append((compatible ? compatibility : canonical)[c]);
}

// Marks in the order of their combining classes, those of one class as they came.
void reorder(std::u32string& chars) {
  const CodePoints& points = code_points();
  for (size_t i = 0; i < chars.size(); ++i) {
    if (!points.combining_class(chars[i])) continue;
    size_t end = i;
    while (end < chars.size() && points.combining_class(chars[end])) ++end;
    std::stable_sort(
        chars.begin() + static_cast<std::ptrdiff_t>(i), chars.begin() + static_cast<std::ptrdiff_t>(end),
        [&](char32_t a, char32_t b) { return points.combining_class(a) < points.combining_class(b); });
    i = end;
  }
}

void compose(std::u32string& chars) {
  static const Compositions compositions;
  const CodePoints& points = code_points();
  size_t kept = 0;
  size_t starter = SIZE_MAX;
  int last_class = -1;  // of the marks kept since the starter
  for (const char32_t c : chars) {
    const int c_class = points.combining_class(c);
    if (starter != SIZE_MAX && last_class < c_class) {
      if (const char32_t both = compositions(chars[starter], c)) {
        chars[starter] = both;
        continue;
      }
    }
    if (c_class == 0) {
      starter = kept;
      last_class = -1;
    } else {
      last_class = c_class;
    }
    chars[kept++] = c;
  }
  chars.resize(kept);
}

uint32_t may_change(NormalForm form) {
  switch (form) {
    case NormalForm::kNfc: return kMayCompose;
    case NormalForm::kNfkc: return kMayComposeCompatible;
    case NormalForm::kNfd: return kHasCanonical;
    case NormalForm::kNfkd: return kHasCompatible;
  }
  return ~0u;
}

}  // namespace

CodePoints::CodePoints() {
  std::vector<uint32_t> flat(0x110000);
  for (size_t run = 0; run < std::size(kRuns); ++run) {
    const uint32_t begin = kRuns[run] >> 11;
    const uint32_t end = run + 1 < std::size(kRuns) ? kRuns[run + 1] >> 11 : 0x110000;
    std::fill(flat.begin() + begin, flat.begin() + end, kClasses[kRuns[run] & 0x7FF]);
  }
  std::map<std::vector<uint32_t>, uint16_t> seen;
  for (size_t block = 0; block < std::size(blocks_); ++block) {
    const auto begin = flat.begin() + static_cast<std::ptrdiff_t>(block << 8);
    std::vector<uint32_t> entries(begin, begin + 256);
    const auto [found, added] = seen.try_emplace(entries, static_cast<uint16_t>(entries_.size() >> 8));
    if (added) entries_.insert(entries_.end(), entries.begin(), entries.end());
    blocks_[block] = found->second;
  }
}

const CodePoints& code_points() {
  static const CodePoints table;
  return table;
}

std::string normalized(std::string_view text, NormalForm form) {
  const bool compatible = form == NormalForm::kNfkc || form == NormalForm::kNfkd;
  const bool composed = form == NormalForm::kNfc || form == NormalForm::kNfkc;
  const CodePoints& points = code_points();
  const uint32_t change = may_change(form);
  const auto stays = [&](char32_t c) {
    const uint32_t flags = points[c];
    return !(flags & change) && (flags >> 16 & 0xFF) == 0 && (composed || c - kSyllables >= kSyllableCount);
  };
  std::string out;
  out.reserve(text.size() + 16);
  std::u32string part;
  // What stays as it is, and is followed by such a character, is copied; the stretches between are worked
  // out.
  size_t copied = 0;
  for (size_t i = 0; i < text.size();) {
    const DecodedChar c = decode_char(text.data() + i);
    if (c.value < 0x80 || stays(c.value)) {
      i += c.bytes;
      continue;
    }
    size_t begin = i;  // the character before may take part
    if (begin > copied) {
      do --begin;
      while (is_continuation(text[begin]));
    }
    out.append(text.substr(copied, begin - copied));
    part.clear();
    size_t end = begin;
    while (end < text.size()) {
      const DecodedChar next = decode_char(text.data() + end);
      if (end > i && (next.value < 0x80 || stays(next.value))) break;
      append_decomposed(next.value, compatible, part);
      end += next.bytes;
    }
    reorder(part);
    if (composed) compose(part);
    out.append(from_chars(part));
    copied = i = end;
  }
  out.append(text.substr(copied));
  return out;
}

std::string lowercased(std::string_view text) {
  static const CharTexts lower(kLowercase, 1u << 0);
  std::string out;
  out.reserve(text.size() + 8);
  for (size_t i = 0; i < text.size();) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte < 0x80) {
      out.push_back(static_cast<char>(byte >= 'A' && byte <= 'Z' ? byte + 32 : byte));
      ++i;
      continue;
    }
    const DecodedChar c = decode_char(text.data() + i);
    const std::u32string_view to = lower[c.value];
    if (to.empty()) {
      out.append(text.substr(i, c.bytes));
    } else {
      for (const char32_t t : to) append_char(out, t);
    }
    i += c.bytes;
  }
  return out;
}

}  // namespace lockstep::tok
