#include "jinja/lexer.h"

#include <algorithm>
#include <array>

#include "base/error.h"

namespace lockstep {
namespace {

using Kind = JinjaWordKind;

bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool begins_name(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

void put_code_point(uint32_t point, std::string& out) {
  const auto put = [&](uint32_t byte) { out += static_cast<char>(byte); };
  if (point < 0x80) {
    put(point);
  } else if (point < 0x800) {
    put(0xc0 | point >> 6);
    put(0x80 | (point & 0x3f));
  } else if (point < 0x10000) {
    put(0xe0 | point >> 12);
    put(0x80 | (point >> 6 & 0x3f));
    put(0x80 | (point & 0x3f));
  } else {
    put(0xf0 | point >> 18);
    put(0x80 | (point >> 12 & 0x3f));
    put(0x80 | (point >> 6 & 0x3f));
    put(0x80 | (point & 0x3f));
  }
}

class JinjaLexer {
 public:
  explicit JinjaLexer(std::string_view source) {
    for (size_t i = 0; i < source.size(); ++i) {
      if (source[i] != '\r') {
        source_ += source[i];
        continue;
      }
      source_ += '\n';
      if (source.substr(i + 1, 1) == "\n") ++i;
    }
    if (source_.ends_with('\n')) source_.pop_back();
  }

  std::vector<JinjaWord> words() {
    while (at_ < source_.size()) text_and_tag();
    add(Kind::kEnd, "");
    return std::move(words_);
  }

 private:
  std::string_view rest() const { return std::string_view(source_).substr(at_); }
  bool begins(std::string_view text) const { return rest().starts_with(text); }
  void add(Kind kind, std::string text) { words_.push_back({kind, std::move(text), line_}); }
  [[noreturn]] void refuse(std::string_view problem) const { throw UserError("line {}: {}", line_, problem); }
  void advance(size_t bytes) {
    line_ += static_cast<int>(std::count(source_.begin() + static_cast<std::ptrdiff_t>(at_),
                                         source_.begin() + static_cast<std::ptrdiff_t>(at_ + bytes), '\n'));
    at_ += bytes;
  }
  void skip_blanks() {
    size_t blanks = 0;
    while (at_ + blanks < source_.size() && is_blank(source_[at_ + blanks])) ++blanks;
    advance(blanks);
  }

  // The text up to the next tag, and that tag.
  void text_and_tag() {
    size_t tag = at_;
    for (;; ++tag) {
      tag = source_.find('{', tag);
      if (tag == std::string::npos || tag + 1 == source_.size()) {
        tag = source_.size();
        break;
      }
      if (const char next = source_[tag + 1]; next == '{' || next == '%' || next == '#') break;
    }
    const bool last = tag == source_.size();
    const char kind = last ? '\0' : source_[tag + 1];
    const char mark = last || tag + 2 >= source_.size() ? '\0' : source_[tag + 2];
    std::string_view text = std::string_view(source_).substr(at_, tag - at_);
    if (!last && mark == '-')
      while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
    else if (!last && kind != '{' && mark != '+')
      text = without_indent(text);
    if (!text.empty()) add(Kind::kText, std::string(text));
    advance(tag - at_);
    if (last) return;
    advance(2);
    if (mark == '-' || mark == '+') advance(1);
    if (kind == '#') return comment();
    if (kind == '%' && raw()) return;
    add(kind == '{' ? Kind::kPrintBegin : Kind::kTagBegin, "");
    expression(kind == '{' ? '}' : '%');
  }

  // lstrip_blocks: what indents a tag that begins its line.
  std::string_view without_indent(std::string_view text) const {
    const size_t newline = text.rfind('\n');
    if (newline == std::string_view::npos && !line_starts_) return text;
    const size_t begin = newline == std::string_view::npos ? 0 : newline + 1;
    const bool blank = std::all_of(text.begin() + static_cast<std::ptrdiff_t>(begin), text.end(), is_blank);
    return blank ? text.substr(0, begin) : text;
  }

  // What follows the end of a tag: nothing more with '-', one newline less after tags that print nothing.
  void after_tag(char mark, bool prints) {
    const size_t before = at_;
    if (mark == '-')
      skip_blanks();
    else if (mark != '+' && !prints && begins("\n"))
      advance(1);
    line_starts_ = at_ > before && source_[at_ - 1] == '\n';
  }

  void comment() {
    const size_t end = source_.find("#}", at_);
    if (end == std::string::npos) refuse("a comment is not closed by #}");
    const char mark = end > at_ ? source_[end - 1] : '\0';
    advance(end + 2 - at_);
    after_tag(mark, false);
  }

  // {% raw %} ... {% endraw %}, from behind the first {%.
  bool raw() {
    const size_t begin = at_;
    const int line = line_;
    skip_blanks();
    if (!begins("raw") || (rest().size() > 3 && (begins_name(rest()[3]) || is_digit(rest()[3])))) {
      at_ = begin;
      line_ = line;
      return false;
    }
    advance(3);
    skip_blanks();
    const bool strips = begins("-%}");
    if (!strips && !begins("%}")) refuse("raw takes nothing more");
    advance(strips ? 3 : 2);
    if (strips) skip_blanks();
    for (size_t tag = at_;; tag += 2) {
      tag = source_.find("{%", tag);
      if (tag == std::string::npos) refuse("raw is not closed by endraw");
      size_t word = tag + 2;
      const char mark = word < source_.size() ? source_[word] : '\0';
      if (mark == '-' || mark == '+') ++word;
      while (word < source_.size() && is_blank(source_[word])) ++word;
      if (!std::string_view(source_).substr(word).starts_with("endraw")) continue;
      word += 6;
      while (word < source_.size() && is_blank(source_[word])) ++word;
      const char end_mark = word < source_.size() ? source_[word] : '\0';
      if (end_mark == '-' || end_mark == '+') ++word;
      if (!std::string_view(source_).substr(word).starts_with("%}")) continue;
      std::string_view text = std::string_view(source_).substr(at_, tag - at_);
      if (mark == '-')
        while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
      else if (mark != '+')
        text = without_indent(text);
      if (!text.empty()) add(Kind::kText, std::string(text));
      advance(word + 2 - at_);
      after_tag(end_mark, false);
      return true;
    }
  }

  // The words of a tag, and its end.
  void expression(char closing) {
    const std::string end = closing == '}' ? "}}" : "%}";
    std::string open;  // brackets
    for (;;) {
      skip_blanks();
      if (at_ == source_.size()) refuse(closing == '}' ? "{{ is not closed by }}" : "{% is not closed by %}");
      const char mark = source_[at_];
      const bool marked = mark == '-' || (mark == '+' && closing == '%');
      if (open.empty() && (begins(end) || (marked && rest().substr(1).starts_with(end)))) {
        add(closing == '}' ? Kind::kPrintEnd : Kind::kTagEnd, "");
        advance(begins(end) ? 2 : 3);
        after_tag(marked ? mark : '\0', closing == '}');
        return;
      }
      word(open);
    }
  }

  void word(std::string& open) {
    const char c = source_[at_];
    if (begins_name(c)) {
      size_t size = 1;
      while (at_ + size < source_.size() &&
             (begins_name(source_[at_ + size]) || is_digit(source_[at_ + size])))
        ++size;
      add(Kind::kName, source_.substr(at_, size));
      return advance(size);
    }
    if (is_digit(c)) return number();
    if (c == '\'' || c == '"') return string(c);
    constexpr auto kOperators = std::to_array<std::string_view>(
        {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[",
         "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ","});
    for (const std::string_view operation : kOperators) {
      if (!begins(operation)) continue;
      if (c == '[' || c == '(' || c == '{') open += c == '[' ? ']' : c == '(' ? ')' : '}';
      if (c == ']' || c == ')' || c == '}') {
        if (open.empty() || open.back() != c) refuse(fmt::format("'{}' closes nothing", c));
        open.pop_back();
      }
      add(Kind::kOperator, std::string(operation));
      return advance(operation.size());
    }
    refuse(fmt::format("the character '{}' has no meaning here", c));
  }

  void number() {
    std::string digits;
    bool real = false;
    size_t at = at_;
    const auto take = [&] {
      while (at < source_.size() && (is_digit(source_[at]) || source_[at] == '_')) {
        if (source_[at] != '_') digits += source_[at];
        ++at;
      }
    };
    take();
    if (at + 1 < source_.size() && source_[at] == '.' && is_digit(source_[at + 1])) {
      real = true;
      digits += source_[at++];
      take();
    }
    if (at < source_.size() && (source_[at] == 'e' || source_[at] == 'E')) {
      const size_t sign =
          at + 1 < source_.size() && (source_[at + 1] == '-' || source_[at + 1] == '+') ? 1 : 0;
      if (at + 1 + sign < source_.size() && is_digit(source_[at + 1 + sign])) {
        real = true;
        digits += 'e';
        if (sign == 1 && source_[at + 1] == '-') digits += '-';
        at += 1 + sign;
        take();
      }
    }
    add(real ? Kind::kReal : Kind::kWhole, digits);
    advance(at - at_);
  }

  void string(char quote) {
    std::string text;
    size_t at = at_ + 1;
    for (; at < source_.size() && source_[at] != quote; ++at) {
      if (source_[at] != '\\' || at + 1 == source_.size()) {
        text += source_[at];
        continue;
      }
      at = escape(at + 1, text);
    }
    if (at >= source_.size()) refuse("a text is not closed");
    add(Kind::kString, std::move(text));
    advance(at + 1 - at_);
  }

  // The escape whose letter stands at `at`; gives where its last character does.
  size_t escape(size_t at, std::string& text) const {
    constexpr std::string_view kLetters = "ntrbfav0\\'\"", kMeant{"\n\t\r\b\f\a\v\0\\'\"", 11};
    const char letter = source_[at];
    if (const size_t known = kLetters.find(letter); known != std::string_view::npos) {
      text += kMeant[known];
    } else if (letter == '\n') {
      // A line that goes on.
    } else if (letter == 'x' || letter == 'u' || letter == 'U') {
      const size_t digits = letter == 'x' ? 2 : letter == 'u' ? 4 : 8;
      uint32_t point = 0;
      for (size_t i = 1; i <= digits; ++i) {
        const char c = at + i < source_.size() ? source_[at + i] : '\0';
        const int value = is_digit(c)            ? c - '0'
                          : c >= 'a' && c <= 'f' ? c - 'a' + 10
                          : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                 : -1;
        if (value < 0) refuse("an escape in a text has too few hexadecimal digits");
        point = point << 4 | static_cast<uint32_t>(value);
      }
      if (point > 0x10ffff || (point >= 0xd800 && point < 0xe000))
        refuse("an escape in a text is no character");
      put_code_point(point, text);
      return at + digits;
    } else {
      text += '\\';
      text += letter;
    }
    return at;
  }

  std::string source_;
  size_t at_ = 0;
  int line_ = 1;
  bool line_starts_ = true;  // the text that comes next begins a line
  std::vector<JinjaWord> words_;
};

}  // namespace

std::vector<JinjaWord> jinja_words(std::string_view source) { return JinjaLexer(source).words(); }

}  // namespace lockstep
