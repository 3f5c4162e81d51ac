// Splits the text form into tokens that know their line and column.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep {

struct Token {
  enum class Kind : uint8_t { kName, kNumber, kString, kPunctuation, kEnd };
  Kind kind = Kind::kEnd;
  std::string text;  // the characters, with a string's quotes and escapes removed
  int line = 1;
  int column = 1;
};

class Lexer {
 public:
  Lexer(std::string_view text, std::string_view file) : text_(text), file_(file) { advance(); }

  const Token& peek() const { return token_; }
  Token take();
  bool at(std::string_view punctuation) const;
  bool accept(std::string_view punctuation);
  Token expect(std::string_view punctuation);
  std::string expect_name(std::string_view what);

  // "file:line:column: what" at the token in front.
  [[noreturn]] void fail(std::string_view what) const { fail_at(token_, what); }
  [[noreturn]] void fail_at(const Token& token, std::string_view what) const;

 private:
  void advance();
  void skip_blank();
  void read_string();

  std::string_view text_;
  std::string file_;
  size_t position_ = 0;
  int line_ = 1;
  size_t line_start_ = 0;
  Token token_;
};

bool is_name(std::string_view text);  // a letter or _, then letters, digits, _ and .

}  // namespace lockstep
