#include "graph/attribute_parser.h"

#include <fmt/format.h>

#include <charconv>

namespace lockstep {
namespace {

// A bound, so that a hostile or broken file ends in an error and not in memory exhaustion.
constexpr size_t kMaxListItems = 1 << 20;

double parse_double(const Lexer& lexer, const Token& token) {
  double value = 0;
  const char* end = token.text.data() + token.text.size();
  const auto [stop, failure] = std::from_chars(token.text.data(), end, value);
  if (failure != std::errc() || stop != end || token.text.empty())
    lexer.fail_at(token, fmt::format("'{}' is not a number", token.text.substr(0, 40)));
  return value;
}

Attribute parse_list(Lexer& lexer) {
  std::vector<int64_t> integers;
  std::vector<double> numbers;
  bool all_integers = true;
  while (!lexer.accept("]")) {
    const Token token = lexer.take();
    const Attribute item = parse_number(lexer, token);
    if (const auto* integer = std::get_if<int64_t>(&item)) {
      integers.push_back(*integer);
      numbers.push_back(static_cast<double>(*integer));
    } else {
      all_integers = false;
      numbers.push_back(std::get<double>(item));
    }
    if (numbers.size() > kMaxListItems)
      lexer.fail_at(token, fmt::format("more than {} items in a list", kMaxListItems));
    if (!lexer.at("]")) lexer.expect(",");
  }
  if (all_integers) return integers;
  return numbers;
}

}  // namespace

int64_t parse_integer(const Lexer& lexer, const Token& token) {
  int64_t value = 0;
  const char* end = token.text.data() + token.text.size();
  const auto [stop, failure] = std::from_chars(token.text.data(), end, value);
  if (token.kind != Token::Kind::kNumber || failure != std::errc() || stop != end)
    lexer.fail_at(token, fmt::format("'{}' is not a 64-bit integer", token.text.substr(0, 40)));
  return value;
}

Attribute parse_number(const Lexer& lexer, const Token& token) {
  if (token.kind == Token::Kind::kNumber && token.text.find_first_of(".eEin") == std::string::npos)
    return parse_integer(lexer, token);
  return parse_double(lexer, token);
}

Attribute parse_attribute(Lexer& lexer) {
  if (lexer.accept("[")) return parse_list(lexer);
  const Token token = lexer.take();
  switch (token.kind) {
    case Token::Kind::kString: return token.text;
    case Token::Kind::kNumber: return parse_number(lexer, token);
    case Token::Kind::kName:
      if (token.text == "true") return true;
      if (token.text == "false") return false;
      if (token.text == "inf" || token.text == "nan") return parse_double(lexer, token);
      if (const auto dtype = parse_dtype(token.text)) return *dtype;
      break;
    default: break;
  }
  lexer.fail_at(token,
                fmt::format("'{}' is not a value: write a number, true, false, a dtype, \"text\" or [list]",
                            token.text));
}

Attributes parse_attributes(Lexer& lexer) {
  Attributes attributes;
  while (!lexer.accept("}")) {
    const Token start = lexer.peek();
    const std::string name = lexer.expect_name("the name of an attribute");
    if (attributes.find(name) != nullptr)
      lexer.fail_at(start, fmt::format("attribute {} is given twice", name));
    lexer.expect("=");
    attributes.set(name, parse_attribute(lexer));
    if (!lexer.at("}")) lexer.expect(",");
  }
  return attributes;
}

}  // namespace lockstep
