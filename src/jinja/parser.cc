#include "jinja/parser.h"

#include <algorithm>
#include <charconv>

#include "jinja/filters.h"
#include "jinja/lexer.h"

namespace lockstep {
namespace {

using Kind = JinjaKind;
using Word = JinjaWordKind;
using Node = std::unique_ptr<JinjaNode>;

constexpr int kDeepest = 150;   // nested blocks and expressions
constexpr int kHighest = 1000;  // operators in one chain

class JinjaParser {
 public:
  explicit JinjaParser(std::string_view source) : words_(jinja_words(source)) {}

  ParsedJinja parse() {
    Node root = block({});
    if (word().kind != Word::kEnd) refuse(fmt::format("'{}' closes nothing", word().text));
    return {std::move(root), has_generation_};
  }

 private:
  const JinjaWord& word(size_t ahead = 0) const { return words_[std::min(at_ + ahead, words_.size() - 1)]; }
  JinjaWord next() {
    JinjaWord taken = word();
    if (at_ + 1 < words_.size()) ++at_;
    return taken;
  }
  [[noreturn]] void refuse(std::string_view problem) const {
    throw UserError("line {}: {}", word().line, problem);
  }
  bool at_operator(std::string_view text) const {
    return word().kind == Word::kOperator && word().text == text;
  }
  bool at_name(std::string_view text) const { return word().kind == Word::kName && word().text == text; }
  bool take_operator(std::string_view text) {
    if (!at_operator(text)) return false;
    next();
    return true;
  }
  bool take_name(std::string_view text) {
    if (!at_name(text)) return false;
    next();
    return true;
  }
  void expect(std::string_view text) {
    if (!take_operator(text)) refuse(fmt::format("'{}' is expected before '{}'", text, word().text));
  }
  std::string name() {
    if (word().kind != Word::kName) refuse("a name is expected");
    return next().text;
  }
  void end_tag() {
    if (word().kind != Word::kTagEnd) refuse(fmt::format("'{}' is not expected here", word().text));
    next();
  }
  Node make(Kind kind, std::string text = {}) const {
    auto node = std::make_unique<JinjaNode>();
    node->kind = kind;
    node->line = word().line;
    node->text = std::move(text);
    return node;
  }
  template <typename... Children>
  Node make_of(Kind kind, std::string text, Children... children) const {
    Node node = make(kind, std::move(text));
    const auto take = [&](Node child) {
      if (child) node->height = std::max(node->height, child->height + 1);
      node->children.push_back(std::move(child));
    };
    (take(std::move(children)), ...);
    if (node->height > kHighest) refuse("an expression has too many parts");
    return node;
  }

  class Depth {
   public:
    explicit Depth(JinjaParser& parser) : parser_(parser) {
      if (++parser.depth_ > kDeepest) parser.refuse("blocks and expressions are nested too deep");
    }
    ~Depth() { --parser_.depth_; }
    Depth(const Depth&) = delete;
    Depth& operator=(const Depth&) = delete;

   private:
    JinjaParser& parser_;
  };

  // Statements up to a tag that begins with one of the names, which is left in place (behind its {%).
  Node block(std::initializer_list<std::string_view> ends) {
    const Depth depth(*this);
    Node node = make(Kind::kBlock);
    for (;;) {
      if (word().kind == Word::kText) {
        Node text = make(Kind::kText);
        text->text = next().text;
        node->children.push_back(std::move(text));
      } else if (word().kind == Word::kPrintBegin) {
        next();
        Node printed = make(Kind::kPrint);
        printed->children.push_back(tuple());
        if (word().kind != Word::kPrintEnd) refuse(fmt::format("'{}' is not expected here", word().text));
        next();
        node->children.push_back(std::move(printed));
      } else if (word().kind == Word::kTagBegin) {
        next();
        const bool ended = std::any_of(ends.begin(), ends.end(), [&](auto end) { return at_name(end); });
        if (ended) return node;
        node->children.push_back(statement());
      } else {
        if (ends.size() > 0) refuse(fmt::format("{} is missing", *(ends.end() - 1)));
        return node;
      }
    }
  }

  Node statement() {
    const std::string keyword = name();
    if (keyword == "if") return condition();
    if (keyword == "for") return loop();
    if (keyword == "set") return assignment();
    if (keyword == "macro") return macro();
    if (keyword == "generation") {
      has_generation_ = true;
      end_tag();
      Node body = block({"endgeneration"});
      next();
      end_tag();
      return make_of(Kind::kGeneration, {}, std::move(body));
    }
    if (keyword == "break" || keyword == "continue") {
      if (loops_ == 0) refuse(fmt::format("{} stands outside of a loop", keyword));
      Node node = make(keyword == "break" ? Kind::kBreak : Kind::kContinue);
      end_tag();
      return node;
    }
    if (keyword.starts_with("end") || keyword == "else" || keyword == "elif")
      refuse(fmt::format("'{}' closes nothing", keyword));
    refuse(
        fmt::format("'{}' is not supported; there are if, for, set, macro, generation, raw, break and "
                    "continue",
                    keyword));
  }

  Node condition() {
    Node node = make(Kind::kIf);
    for (;;) {
      node->children.push_back(tuple());
      end_tag();
      node->children.push_back(block({"elif", "else", "endif"}));
      const std::string end = name();
      if (end == "elif") continue;
      end_tag();
      if (end == "endif") return node;
      node->children.push_back(block({"endif"}));
      next();
      end_tag();
      return node;
    }
  }

  std::string targets() {
    std::string names = name();
    while (take_operator(",")) {
      if (word().kind != Word::kName) break;
      names += "," + name();
    }
    return names;
  }

  Node loop() {
    const bool bracketed = take_operator("(");
    std::string names = targets();
    if (bracketed) expect(")");
    Node node = make(Kind::kFor, std::move(names));
    if (!take_name("in")) refuse("'in' is expected after the names of a for");
    node->children.push_back(or_expression());
    node->children.push_back(take_name("if") ? expression() : nullptr);
    if (at_name("recursive")) refuse("recursive loops are not supported");
    end_tag();
    ++loops_;
    node->children.push_back(block({"else", "endfor"}));
    --loops_;
    const std::string end = name();
    end_tag();
    if (end == "endfor") {
      node->children.push_back(nullptr);
      return node;
    }
    node->children.push_back(block({"endfor"}));
    next();
    end_tag();
    return node;
  }

  Node assignment() {
    std::string names = targets();
    if (take_operator(".")) {
      Node node = make(Kind::kSetMember, names + "." + name());
      expect("=");
      node->children.push_back(tuple());
      end_tag();
      return node;
    }
    if (take_operator("=")) {
      Node node = make(Kind::kSet, std::move(names));
      node->children.push_back(tuple());
      end_tag();
      return node;
    }
    end_tag();
    Node node = make(Kind::kSetBlock, std::move(names));
    node->children.push_back(block({"endset"}));
    next();
    end_tag();
    return node;
  }

  Node macro() {
    Node node = make(Kind::kMacro, name());
    std::vector<Node> defaults;
    expect("(");
    while (!take_operator(")")) {
      node->names.push_back(name());
      if (take_operator("="))
        defaults.push_back(expression());
      else if (!defaults.empty())
        refuse("a parameter without a default follows one that has one");
      if (!at_operator(")")) expect(",");
    }
    end_tag();
    const int loops = std::exchange(loops_, 0);
    node->children.push_back(block({"endmacro"}));
    loops_ = loops;
    next();
    if (word().kind == Word::kName) next();
    end_tag();
    for (Node& value : defaults) node->children.push_back(std::move(value));
    return node;
  }

  // An expression, or several with commas: a list.
  Node tuple() {
    Node first = expression();
    if (!at_operator(",")) return first;
    Node list = make(Kind::kList);
    list->children.push_back(std::move(first));
    while (take_operator(",")) {
      if (word().kind == Word::kTagEnd || word().kind == Word::kPrintEnd || at_operator(")")) break;
      list->children.push_back(expression());
    }
    return list;
  }

  Node expression() {
    const Depth depth(*this);
    Node value = or_expression();
    while (take_name("if")) {
      Node condition = or_expression();
      Node otherwise = take_name("else") ? expression() : nullptr;
      value = make_of(Kind::kChoice, {}, std::move(value), std::move(condition), std::move(otherwise));
    }
    return value;
  }
  Node or_expression() {
    Node left = and_expression();
    while (take_name("or")) left = make_of(Kind::kOr, {}, std::move(left), and_expression());
    return left;
  }
  Node and_expression() {
    Node left = not_expression();
    while (take_name("and")) left = make_of(Kind::kAnd, {}, std::move(left), not_expression());
    return left;
  }
  Node not_expression() {
    const Depth depth(*this);
    if (!take_name("not")) return comparison();
    return make_of(Kind::kNot, {}, not_expression());
  }

  Node comparison() {
    Node node = make(Kind::kCompare);
    node->children.push_back(sum());
    for (;;) {
      constexpr std::string_view kOperators[] = {"==", "!=", "<", "<=", ">", ">="};
      const bool compares =
          word().kind == Word::kOperator &&
          std::find(std::begin(kOperators), std::end(kOperators), word().text) != std::end(kOperators);
      if (compares) {
        node->names.push_back(next().text);
      } else if (take_name("in")) {
        node->names.emplace_back("in");
      } else if (at_name("not") && word(1).kind == Word::kName && word(1).text == "in") {
        next();
        next();
        node->names.emplace_back("not in");
      } else {
        break;
      }
      node->children.push_back(sum());
    }
    if (node->names.empty()) return std::move(node->children[0]);
    return node;
  }

  template <typename Operand>
  Node left_to_right(std::initializer_list<std::string_view> operators, const Operand& operand) {
    Node left = operand();
    for (;;) {
      const auto found =
          std::find_if(operators.begin(), operators.end(), [&](auto text) { return at_operator(text); });
      if (found == operators.end()) return left;
      next();
      left = make_of(Kind::kBinary, std::string(*found), std::move(left), operand());
    }
  }
  Node sum() {
    return left_to_right({"+", "-"}, [&] { return joined(); });
  }
  Node joined() {
    return left_to_right({"~"}, [&] { return product(); });
  }
  Node product() {
    return left_to_right({"*", "/", "//", "%"}, [&] { return power(); });
  }
  Node power() {
    return left_to_right({"**"}, [&] { return unary(true); });
  }

  Node unary(bool with_filters) {
    const Depth depth(*this);
    Node node;
    if (take_operator("-"))
      node = make_of(Kind::kNegative, {}, unary(false));
    else if (take_operator("+"))
      node = unary(false);
    else
      node = primary();
    node = postfix(std::move(node));
    return with_filters ? filtered(std::move(node)) : std::move(node);
  }

  Node literal(JinjaValue value) const {
    Node node = make(Kind::kLiteral);
    node->value = std::move(value);
    return node;
  }

  Node primary() {
    switch (word().kind) {
      case Word::kName: {
        Node node = make(Kind::kName, next().text);
        if (node->text == "true" || node->text == "True") return literal(true);
        if (node->text == "false" || node->text == "False") return literal(false);
        if (node->text == "none" || node->text == "None") return literal({});
        return node;
      }
      case Word::kString: {
        std::string text;
        while (word().kind == Word::kString) text += next().text;
        return literal(std::move(text));
      }
      case Word::kWhole: {
        const std::string digits = next().text;
        int64_t value = 0;
        if (std::from_chars(digits.data(), digits.data() + digits.size(), value).ec != std::errc())
          refuse(fmt::format("{} is too large a number", digits.substr(0, 40)));
        return literal(value);
      }
      case Word::kReal: {
        const std::string digits = next().text;
        double value = 0;
        std::from_chars(digits.data(), digits.data() + digits.size(), value);
        return literal(value);
      }
      default: break;
    }
    if (take_operator("(")) {
      if (take_operator(")")) return make(Kind::kList);
      Node node = tuple();
      expect(")");
      return node;
    }
    if (take_operator("[")) {
      Node node = make(Kind::kList);
      while (!take_operator("]")) {
        node->children.push_back(expression());
        if (!at_operator("]")) expect(",");
      }
      return node;
    }
    if (take_operator("{")) {
      Node node = make(Kind::kDict);
      while (!take_operator("}")) {
        node->children.push_back(expression());
        expect(":");
        node->children.push_back(expression());
        if (!at_operator("}")) expect(",");
      }
      return node;
    }
    refuse(word().text.empty() ? "an expression is missing"
                               : fmt::format("an expression is expected before '{}'", word().text));
  }

  Node postfix(Node node) {
    for (;;) {
      if (take_operator(".")) {
        if (word().kind == Word::kWhole)
          node = make_of(Kind::kIndex, {}, std::move(node), primary());
        else
          node = make_of(Kind::kMember, name(), std::move(node));
      } else if (take_operator("[")) {
        node = subscript(std::move(node));
      } else if (at_operator("(")) {
        Node call = make_of(Kind::kCall, {}, std::move(node));
        arguments(*call);
        node = std::move(call);
      } else {
        return node;
      }
    }
  }

  Node subscript(Node node) {
    Node parts[3];
    size_t part = 0;
    bool slice = false;
    while (!take_operator("]")) {
      if (take_operator(":")) {
        slice = true;
        if (++part > 2) refuse("a slice has at most three parts");
      } else {
        if (parts[part]) refuse("']' is expected");
        parts[part] = expression();
      }
    }
    if (slice)
      return make_of(Kind::kSlice, {}, std::move(node), std::move(parts[0]), std::move(parts[1]),
                     std::move(parts[2]));
    if (!parts[0]) refuse("an index is missing");
    return make_of(Kind::kIndex, {}, std::move(node), std::move(parts[0]));
  }

  void arguments(JinjaNode& call) {
    expect("(");
    while (!take_operator(")")) {
      if (word().kind == Word::kName && word(1).kind == Word::kOperator && word(1).text == "=") {
        call.names.push_back(name());
        next();
      } else if (at_operator("*") || at_operator("**")) {
        refuse("arguments with * are not supported");
      } else if (!call.names.empty()) {
        refuse("an argument without a name follows one that has one");
      }
      call.children.push_back(expression());
      if (!at_operator(")")) expect(",");
    }
  }

  Node filtered(Node node) {
    for (;;) {
      if (take_operator("|")) {
        Node filter = make_of(Kind::kFilter, name(), std::move(node));
        if (!is_jinja_filter(filter->text))
          refuse(fmt::format("the filter '{}' is not supported", filter->text));
        if (at_operator("(")) arguments(*filter);
        node = std::move(filter);
      } else if (take_name("is")) {
        node = test(std::move(node));
      } else if (at_operator("(")) {
        Node call = make_of(Kind::kCall, {}, std::move(node));
        arguments(*call);
        node = std::move(call);
      } else {
        return node;
      }
    }
  }

  Node test(Node node) {
    const bool negated = take_name("not");
    Node test = make_of(Kind::kTest, name(), std::move(node));
    test->negated = negated;
    if (!is_jinja_test(test->text)) refuse(fmt::format("the test '{}' is not supported", test->text));
    const Word kind = word().kind;
    const bool argument = kind == Word::kString || kind == Word::kWhole || kind == Word::kReal ||
                          at_operator("[") || at_operator("{") ||
                          (kind == Word::kName && !at_name("else") && !at_name("or") && !at_name("and") &&
                           !at_name("if") && !at_name("is") && !at_name("in") && !at_name("not"));
    if (at_operator("("))
      arguments(*test);
    else if (argument)
      test->children.push_back(postfix(primary()));
    return test;
  }

  std::vector<JinjaWord> words_;
  size_t at_ = 0;
  int depth_ = 0, loops_ = 0;
  bool has_generation_ = false;
};

}  // namespace

ParsedJinja parse_jinja(std::string_view source) { return JinjaParser(source).parse(); }

}  // namespace lockstep
