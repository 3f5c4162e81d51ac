// Oniguruma's pattern (Ruby's syntax) to PCRE2's, with the classes of characters spelled out.
#include <cctype>
#include <functional>
#include <map>

#include "base/error.h"
#include "base/printable.h"
#include "tokenizer/pattern.h"
#include "tokenizer/unicode/code_points.h"
#include "tokenizer/utf8.h"

namespace lockstep::tok {
namespace {

using InClass = std::function<bool(uint32_t flags)>;

constexpr std::string_view kCategoryNames[kCategories] = {
    "Cc", "Cf", "Cn", "Co", "Cs", "Ll", "Lm", "Lo", "Lt", "Lu", "Mc", "Me", "Mn", "Nd", "Nl",
    "No", "Pc", "Pd", "Pe", "Pf", "Pi", "Po", "Ps", "Sc", "Sk", "Sm", "So", "Zl", "Zp", "Zs"};

InClass in_category(std::string_view name) {
  uint32_t set = 0;
  for (int i = 0; i < kCategories; ++i) {
    if (kCategoryNames[i].starts_with(name)) set |= 1u << i;
  }
  return [set](uint32_t flags) { return (set >> (flags & 0x1F) & 1) != 0; };
}

InClass with_flag(uint32_t flag) {
  return [flag](uint32_t flags) { return (flags & flag) != 0; };
}

// \w of Oniguruma: letters, marks, decimal numbers, connectors.
bool is_word(uint32_t flags) {
  const auto category = static_cast<Category>(flags & 0x1F);
  return (category >= Category::kLl && category <= Category::kNd) || category == Category::kPc;
}

const std::map<std::string, InClass, std::less<>>& named_classes() {
  static const std::map<std::string, InClass, std::less<>> classes = [] {
    std::map<std::string, InClass, std::less<>> made;
    for (const std::string_view name : kCategoryNames) {
      made[std::string(name)] = in_category(name);
      made[std::string(name.substr(0, 1))] = in_category(name.substr(0, 1));
    }
    made["Letter"] = made["L"];
    made["Mark"] = made["M"];
    made["Number"] = made["N"];
    made["Punctuation"] = made["P"];
    made["Symbol"] = made["S"];
    made["Separator"] = made["Z"];
    made["Other"] = made["C"];
    made["Han"] = with_flag(kHan);
    made["Hiragana"] = with_flag(kHiragana);
    made["Katakana"] = with_flag(kKatakana);
    made["Hangul"] = with_flag(kHangul);
    return made;
  }();
  return classes;
}

// As it stands between brackets.
std::string ranges_of(const InClass& in_class, bool inverted) {
  const CodePoints& points = code_points();
  std::string out;
  char32_t begin = 0;
  bool inside = false;
  const auto close = [&](char32_t end) {
    out += begin + 1 == end ? fmt::format("\\x{{{:x}}}", uint32_t{begin})
                            : fmt::format("\\x{{{:x}}}-\\x{{{:x}}}", uint32_t{begin}, uint32_t{end - 1});
  };
  for (char32_t c = 0; c <= 0x110000; ++c) {
    // Surrogates are no characters, and PCRE2 refuses to hear of them.
    const bool is_char = c < 0x110000 && (c < 0xD800 || c >= 0xE000);
    const bool now = is_char && in_class(points[c]) != inverted;
    if (now && !inside) begin = c;
    if (!now && inside) close(c);
    inside = now;
  }
  return out;
}

class Translation {
 public:
  Translation(std::string_view pattern, const std::string& where) : pattern_(pattern), where_(where) {}

  std::string run() {
    while (i_ < pattern_.size()) {
      const char c = pattern_[i_];
      if (c == '\\') {
        escape(false);
      } else if (c == '[') {
        bracket();
      } else if (c == '(' && peek(1) == '?') {
        group();
      } else if (c == '{') {
        braces();
      } else {
        copy(1);
      }
    }
    return std::move(out_);
  }

 private:
  char peek(size_t ahead) const { return i_ + ahead < pattern_.size() ? pattern_[i_ + ahead] : '\0'; }
  void copy(size_t count) {
    out_.append(pattern_.substr(i_, count));
    i_ += count;
  }
  [[noreturn]] void refuse(std::string_view what) const {
    throw UserError("{}: the pattern '{}' has {} at byte {}, which Lockstep does not read", where_,
                    printable(pattern_), what, i_);
  }

  // A class, where it may stand alone or between brackets.
  void put_class(const InClass& in_class, bool inverted, bool in_bracket) {
    const std::string ranges = ranges_of(in_class, inverted);
    if (ranges.empty()) refuse("a class of no characters");
    out_ += in_bracket ? ranges : fmt::format("[{}]", ranges);
  }

  void property(bool in_bracket) {
    bool inverted = pattern_[i_ + 1] == 'P';
    const size_t close = pattern_.find('}', i_);
    if (peek(2) != '{' || close == std::string_view::npos) refuse("a \\p without braces");
    std::string_view name = pattern_.substr(i_ + 3, close - i_ - 3);
    if (name.starts_with('^')) {
      inverted = !inverted;
      name.remove_prefix(1);
    }
    const auto& classes = named_classes();
    const auto found = classes.find(name);
    if (found == classes.end()) refuse(fmt::format("the property '{}'", printable(name)));
    put_class(found->second, inverted, in_bracket);
    i_ = close + 1;
  }

  void escape(bool in_bracket) {
    const char c = peek(1);
    switch (c) {
      case 'p':
      case 'P': return property(in_bracket);
      case 's':
      case 'S': put_class(with_flag(kSpaceChar), c == 'S', in_bracket); break;
      case 'd':
      case 'D': put_class(named_classes().find("Nd")->second, c == 'D', in_bracket); break;
      case 'w':
      case 'W': put_class(is_word, c == 'W', in_bracket); break;
      case 'v': out_ += "\\x0b"; break;
      case 'b':
      case 'B': {
        if (in_bracket) refuse(fmt::format("\\{} between brackets", c));
        const std::string word = fmt::format("[{}]", ranges_of(is_word, false));
        out_ += c == 'b' ? fmt::format("(?:(?<={0})(?!{0})|(?<!{0})(?={0}))", word)
                         : fmt::format("(?:(?<={0})(?={0})|(?<!{0})(?!{0}))", word);
        break;
      }
      case 'A':
      case 'z': out_ += fmt::format("\\{}", c); break;
      case 'n':
      case 'r':
      case 't':
      case 'f':
      case 'a':
      case 'e': out_ += fmt::format("\\{}", c); break;
      case 'u': return code_point(4);
      case 'x': return hexadecimal();
      default:
        if (static_cast<unsigned char>(c) >= 0x80 || c == '\0' || std::isalnum(static_cast<unsigned char>(c)))
          refuse(fmt::format("the escape \\{}",
                             c == '\0' ? "" : printable(std::string_view(&pattern_[i_ + 1], 1))));
        out_ += fmt::format("\\{}", c);
    }
    i_ += 2;
  }

  void code_point(size_t digits) {
    const std::string_view text = pattern_.substr(std::min(i_ + 2, pattern_.size()), digits);
    const bool good =
        text.size() == digits && text.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos;
    if (!good) refuse("a code point without four digits");
    out_ += fmt::format("\\x{{{}}}", text);
    i_ += 2 + digits;
  }

  void hexadecimal() {
    if (peek(2) != '{') return code_point_byte();
    const size_t close = pattern_.find('}', i_);
    if (close == std::string_view::npos) refuse("a code point without an end");
    const std::string_view text = pattern_.substr(i_ + 3, close - i_ - 3);
    if (text.empty() || text.size() > 6 ||
        text.find_first_not_of("0123456789abcdefABCDEF") != std::string_view::npos)
      refuse("a code point that is none");
    copy(close + 1 - i_);
  }

  // \xHH below 128: above, Oniguruma reads a byte of UTF-8.
  void code_point_byte() {
    const std::string_view text = pattern_.substr(std::min(i_ + 2, pattern_.size()), 2);
    if (text.size() != 2 || text[0] < '0' || text[0] > '7' ||
        !std::isxdigit(static_cast<unsigned char>(text[1])))
      refuse("a byte that is no character");
    copy(4);
  }

  void bracket() {
    copy(1);
    if (peek(0) == '^') copy(1);
    if (peek(0) == ']') copy(1);
    while (peek(0) != ']') {
      if (i_ >= pattern_.size()) refuse("a bracket without an end");
      if (peek(0) == '[') refuse("a bracket within brackets");
      if (peek(0) == '&' && peek(1) == '&') refuse("an intersection of classes");
      if (peek(0) == '\\') {
        escape(true);
      } else {
        copy(1);
      }
    }
    copy(1);
  }

  void group() {
    for (const std::string_view start :
         {"(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?i:", "(?i)", "(?-i:", "(?-i)"}) {
      if (pattern_.substr(i_).starts_with(start)) return copy(start.size());
    }
    refuse(fmt::format("the group '{}'", printable(pattern_.substr(i_, 4))));
  }

  // {n}, {n,} and {n,m}; what follows must not be a plus, which would mean something else to PCRE2.
  void braces() {
    const size_t close = pattern_.find('}', i_);
    const std::string_view text =
        close == std::string_view::npos ? "" : pattern_.substr(i_ + 1, close - i_ - 1);
    if (text.empty() || text.find_first_not_of("0123456789,") != std::string_view::npos || text[0] == ',')
      refuse("a brace that counts nothing");
    copy(close + 1 - i_);
    if (peek(0) == '+') refuse("a count with a plus behind it");
  }

  std::string_view pattern_;
  const std::string& where_;
  size_t i_ = 0;
  std::string out_;
};

}  // namespace

std::string translate_pattern(std::string_view pattern, const std::string& where) {
  return Translation(pattern, where).run();
}

}  // namespace lockstep::tok
