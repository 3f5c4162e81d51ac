#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/error.h"
#include "data/select/filter.h"

namespace lockstep {
namespace {

using Kind = FilterNode::Kind;

constexpr size_t kLongest = 1 << 16;
constexpr int kDeepest = 64;

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

struct Token {
  enum class Kind : uint8_t { kEnd, kWord, kColumn, kNumber, kText, kSign };
  Kind kind = Kind::kEnd;
  size_t at = 0;          // of its first character
  std::string_view raw;   // as it stands
  std::string text = {};  // of a quoted column or text; of a word in lower case
};

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  [[noreturn]] void fail(size_t at, const std::string& problem) const {
    throw UserError("at character {} of the filter: {}", at + 1, problem);
  }

  Token next() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
    const size_t begin = at_;
    if (at_ == text_.size()) return {Token::Kind::kEnd, begin, {}, {}};
    const char c = text_[at_];
    if (c == '\'') return quoted(Token::Kind::kText, "text");
    if (c == '`') return quoted(Token::Kind::kColumn, "column");
    if (c == '"') fail(begin, "texts stand in single quotes, as in 'DE'");
    if (is_letter(c)) {
      while (at_ < text_.size() && (is_letter(text_[at_]) || is_digit(text_[at_]) || text_[at_] == '.'))
        ++at_;
      Token token{Token::Kind::kWord, begin, text_.substr(begin, at_ - begin), {}};
      for (const char letter : token.raw)
        token.text += letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter + ('a' - 'A')) : letter;
      return token;
    }
    if (is_digit(c) || ((c == '-' || c == '+' || c == '.') && at_ + 1 < text_.size() &&
                        (is_digit(text_[at_ + 1]) || text_[at_ + 1] == '.')))
      return number();
    return sign();
  }

 private:
  Token quoted(Token::Kind kind, const char* what) {
    const size_t begin = at_;
    const char quote = text_[at_++];
    Token token{kind, begin, {}, {}};
    for (;; ++at_) {
      if (at_ == text_.size()) fail(begin, fmt::format("this {} is not closed by another {}", what, quote));
      if (text_[at_] != quote) {
        token.text += text_[at_];
      } else if (at_ + 1 < text_.size() && text_[at_ + 1] == quote) {
        token.text += quote;
        ++at_;
      } else {
        ++at_;
        token.raw = text_.substr(begin, at_ - begin);
        return token;
      }
    }
  }

  Token number() {
    const size_t begin = at_;
    const auto part_of_number = [&](size_t i) {
      const char c = text_[i];
      const bool after_exponent = i > begin && (text_[i - 1] == 'e' || text_[i - 1] == 'E');
      return is_digit(c) || c == '.' || is_letter(c) || ((c == '-' || c == '+') && after_exponent);
    };
    for (++at_; at_ < text_.size() && part_of_number(at_);) ++at_;
    return {Token::Kind::kNumber, begin, text_.substr(begin, at_ - begin), {}};
  }

  Token sign() {
    const size_t begin = at_;
    for (const std::string_view known : {"==", "!=", "<=", ">=", "<", ">", "(", ")", ","})
      if (text_.substr(at_).starts_with(known)) {
        at_ += known.size();
        return {Token::Kind::kSign, begin, known, {}};
      }
    if (text_[at_] == '=') fail(begin, "equality is written ==");
    if (text_[at_] == '!') fail(begin, "a negation is written not");
    if (text_[at_] == '&') fail(begin, "both is written and");
    if (text_[at_] == '|') fail(begin, "either is written or");
    const auto byte = static_cast<unsigned char>(text_[at_]);
    if (byte < 0x20 || byte >= 0x7f)
      fail(begin, fmt::format("byte {:#04x} outside of quotes; a column with such a name stands in `...`",
                              unsigned{byte}));
    fail(begin, fmt::format("'{}' means nothing here", text_[at_]));
  }

  std::string_view text_;
  size_t at_ = 0;
};

class Parser {
 public:
  explicit Parser(std::string_view text) : lexer_(text), token_(lexer_.next()) {}

  FilterNode parse() {
    if (token_.kind == Token::Kind::kEnd) expected("a comparison such as amount > 0");
    FilterNode node = either(0);
    if (token_.kind != Token::Kind::kEnd) expected("and, or, or the end");
    return node;
  }

 private:
  bool is_word(std::string_view word) const {
    return token_.kind == Token::Kind::kWord && token_.text == word;
  }
  bool is_sign(std::string_view sign) const {
    return token_.kind == Token::Kind::kSign && token_.raw == sign;
  }
  Token take() {
    Token taken = std::move(token_);
    token_ = lexer_.next();
    return taken;
  }
  bool take_word(std::string_view word) { return is_word(word) && (take(), true); }
  bool take_sign(std::string_view sign) { return is_sign(sign) && (take(), true); }

  [[noreturn]] void expected(std::string_view what) const {
    if (token_.kind == Token::Kind::kEnd)
      lexer_.fail(token_.at, fmt::format("it ends where {} is expected", what));
    lexer_.fail(token_.at, fmt::format("{} stands where {} is expected", token_.raw, what));
  }

  FilterNode joined(Kind kind, std::string_view word, int depth, FilterNode (Parser::*part)(int)) {
    FilterNode first = (this->*part)(depth);
    if (!is_word(word)) return first;
    FilterNode node{kind};
    node.parts.push_back(std::move(first));
    while (take_word(word)) node.parts.push_back((this->*part)(depth));
    return node;
  }
  FilterNode either(int depth) { return joined(Kind::kOr, "or", depth, &Parser::both); }
  FilterNode both(int depth) { return joined(Kind::kAnd, "and", depth, &Parser::single); }

  FilterNode single(int depth) {
    if (depth > kDeepest) lexer_.fail(token_.at, fmt::format("more than {} levels", kDeepest));
    if (take_word("not")) return negated(single(depth + 1));
    if (take_sign("(")) {
      FilterNode node = either(depth + 1);
      if (!take_sign(")")) expected("and, or, or )");
      return node;
    }
    return test();
  }

  static FilterNode negated(FilterNode node) {
    FilterNode result{Kind::kNot};
    result.parts.push_back(std::move(node));
    return result;
  }

  FilterNode test() {
    constexpr std::string_view kReserved[] = {"and", "or", "not", "in", "is", "missing"};
    const bool word =
        token_.kind == Token::Kind::kWord &&
        std::find(std::begin(kReserved), std::end(kReserved), token_.text) == std::end(kReserved);
    if (!word && token_.kind != Token::Kind::kColumn) expected("the name of a column");
    const Token name = take();
    FilterNode node{Kind::kMissing, {}, word ? std::string(name.raw) : name.text, {}};
    if (node.column.empty()) lexer_.fail(name.at, "a column has a name");
    if (take_word("is")) {
      const bool there = take_word("not");
      if (!take_word("missing")) expected("missing");
      return there ? negated(std::move(node)) : node;
    }
    const bool outside = take_word("not");
    if (take_word("in")) {
      FilterNode missing = node;
      node.kind = Kind::kIn;
      read_list(node);
      if (!outside) return node;
      // A comparison too: it does not hold for what is missing.
      FilterNode both{Kind::kAnd};
      both.parts = {negated(std::move(node)), negated(std::move(missing))};
      return both;
    }
    if (outside) expected("in");
    node.kind = sign();
    node.values.push_back(value());
    return node;
  }

  Kind sign() {
    constexpr std::pair<std::string_view, Kind> kSigns[] = {{"==", Kind::kEqual}, {"!=", Kind::kUnequal},
                                                            {"<", Kind::kLess},   {"<=", Kind::kAtMost},
                                                            {">", Kind::kMore},   {">=", Kind::kAtLeast}};
    for (const auto& [text, kind] : kSigns)
      if (take_sign(text)) return kind;
    expected("==, !=, <, <=, >, >=, in or is");
  }

  void read_list(FilterNode& node) {
    if (!take_sign("(")) expected("( and a list of values");
    do {
      const size_t at = token_.at;
      node.values.push_back(value());
      if (node.values.back().index() != node.values[0].index())
        lexer_.fail(at, "a list holds numbers or texts, not both");
    } while (take_sign(","));
    if (!take_sign(")")) expected(", or )");
  }

  ScalarValue value() {
    if (token_.kind == Token::Kind::kText) return take().text;
    if (token_.kind != Token::Kind::kNumber) expected("a number or a text in single quotes");
    const Token token = take();
    std::string_view digits = token.raw;
    if (digits.starts_with('+')) digits.remove_prefix(1);
    const char* end = digits.data() + digits.size();
    int64_t whole = 0;
    if (const auto read = std::from_chars(digits.data(), end, whole);
        read.ec == std::errc() && read.ptr == end)
      return ExactNumber::of(whole);
    if (digits.find_first_not_of("-0123456789") == std::string_view::npos)
      lexer_.fail(token.at, fmt::format("{} has more than 64 bits; compare the text, which is exact: '{}'",
                                        token.raw, digits));
    ExactNumber number;
    const auto read = std::from_chars(digits.data(), end, number.value);
    if (read.ec != std::errc() || read.ptr != end || !std::isfinite(number.value))
      lexer_.fail(token.at, fmt::format("{} is not a number", token.raw));
    // 1e3 is as whole as 1000.
    if (std::abs(number.value) < 0x1p53 && number.value == std::floor(number.value))
      number.whole = static_cast<int64_t>(number.value);
    return number;
  }

  Lexer lexer_;
  Token token_;
};

}  // namespace

FilterNode parse_filter(std::string_view text) {
  if (text.size() > kLongest)
    throw UserError("the filter has {} characters; use at most {}", text.size(), kLongest);
  return Parser(text).parse();
}

}  // namespace lockstep
