#include "graph/lexer.h"

#include <cctype>

#include "base/error.h"

namespace lockstep {
namespace {

bool starts_name(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool in_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.'; }
bool starts_number(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

std::string shown(const Token& token) {
  if (token.kind == Token::Kind::kEnd) return "the end of the text";
  return "'" + token.text.substr(0, 40) + "'";
}

}  // namespace

bool is_name(std::string_view text) {
  if (text.empty() || !starts_name(text[0])) return false;
  for (const char c : text)
    if (!in_name(c)) return false;
  return true;
}

Token Lexer::take() {
  Token taken = std::move(token_);
  advance();
  return taken;
}

bool Lexer::at(std::string_view punctuation) const {
  return token_.kind == Token::Kind::kPunctuation && token_.text == punctuation;
}

bool Lexer::accept(std::string_view punctuation) {
  if (!at(punctuation)) return false;
  advance();
  return true;
}

Token Lexer::expect(std::string_view punctuation) {
  if (!at(punctuation)) fail(fmt::format("expected '{}', found {}", punctuation, shown(token_)));
  return take();
}

std::string Lexer::expect_name(std::string_view what) {
  if (token_.kind != Token::Kind::kName) fail(fmt::format("expected {}, found {}", what, shown(token_)));
  return take().text;
}

void Lexer::fail_at(const Token& token, std::string_view what) const {
  throw UserError("{}:{}:{}: {}", file_, token.line, token.column, what);
}

void Lexer::skip_blank() {
  while (position_ < text_.size()) {
    const char c = text_[position_];
    if (c == '#') {
      while (position_ < text_.size() && text_[position_] != '\n') ++position_;
    } else if (c == '\n') {
      ++position_;
      ++line_;
      line_start_ = position_;
    } else if (c == ' ' || c == '\t' || c == '\r') {
      ++position_;
    } else {
      return;
    }
  }
}

void Lexer::read_string() {
  token_.kind = Token::Kind::kString;
  for (++position_; position_ < text_.size() && text_[position_] != '"'; ++position_) {
    char c = text_[position_];
    if (c == '\n') break;
    if (c == '\\' && position_ + 1 < text_.size()) {
      c = text_[++position_];
      if (c == 'n') c = '\n';
    }
    token_.text += c;
  }
  if (position_ >= text_.size() || text_[position_] != '"')
    fail("a text in quotes is not closed on its line");
  ++position_;
}

void Lexer::advance() {
  skip_blank();
  token_ = {Token::Kind::kEnd, "", line_, static_cast<int>(position_ - line_start_) + 1};
  if (position_ >= text_.size()) return;
  const char c = text_[position_];
  const char next = position_ + 1 < text_.size() ? text_[position_ + 1] : '\0';
  const size_t start = position_;
  if (c == '"') return read_string();
  if (starts_name(c)) {
    token_.kind = Token::Kind::kName;
    while (position_ < text_.size() && in_name(text_[position_])) ++position_;
  } else if (starts_number(c) || (c == '-' && (starts_number(next) || next == 'i' || next == 'n'))) {
    token_.kind = Token::Kind::kNumber;
    ++position_;
    while (position_ < text_.size()) {
      const char d = text_[position_];
      const bool exponent_sign =
          (d == '-' || d == '+') && (text_[position_ - 1] == 'e' || text_[position_ - 1] == 'E');
      if (!in_name(d) && !exponent_sign) break;
      ++position_;
    }
  } else {
    token_.kind = Token::Kind::kPunctuation;
    position_ += (c == '<' && next == '-') ? 2 : 1;
  }
  token_.text = text_.substr(start, position_ - start);
}

}  // namespace lockstep
