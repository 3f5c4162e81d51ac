#include <algorithm>

#include "base/error.h"
#include "graph/attribute_parser.h"
#include "graph/lexer.h"
#include "graph/op_def.h"
#include "graph/text.h"

namespace lockstep {
namespace {

// Bounds on what a text may ask for, so that a hostile or broken file ends in an error and not in memory
// exhaustion.
constexpr size_t kMaxText = size_t{256} << 20;
constexpr size_t kMaxNodes = 1 << 20;

class Parser {
 public:
  Parser(std::string_view text, const OpSet& ops, std::string_view file) : lexer_(text, file), ops_(ops) {}

  Graph parse() {
    const Token start = lexer_.peek();
    if (lexer_.expect_name("'graph'") != "graph")
      lexer_.fail_at(start, "a graph begins with the word 'graph'");
    Graph graph(ops_, lexer_.expect_name("the name of the graph"));
    lexer_.expect("(");
    while (!lexer_.accept(")")) {
      parse_input(graph);
      if (!lexer_.at(")")) lexer_.expect(",");
    }
    lexer_.expect("{");
    while (parse_statement(graph)) {
      if (graph.nodes().size() > kMaxNodes) lexer_.fail(fmt::format("more than {} nodes", kMaxNodes));
    }
    lexer_.expect("}");
    if (lexer_.peek().kind != Token::Kind::kEnd) lexer_.fail("text after the end of the graph");
    check_statistics(graph);
    return graph;
  }

 private:
  void parse_input(Graph& graph) {
    const Token start = lexer_.peek();
    const std::string name = lexer_.expect_name("the name of an input");
    lexer_.expect(":");
    const Type type = parse_type();
    Role role = Role::kInput;
    if (lexer_.accept("@")) {
      const Token at = lexer_.peek();
      const std::string wanted = lexer_.expect_name("a role");
      bool known = false;
      for (const Role candidate :
           {Role::kInput, Role::kParam, Role::kFrozen, Role::kGrad, Role::kState, Role::kStatistic}) {
        if (name_of(candidate) != wanted) continue;
        role = candidate;
        known = true;
      }
      if (!known)
        lexer_.fail_at(
            at, fmt::format("unknown role {}; use input, param, frozen, grad, state or statistic", wanted));
    }
    guarded(start, [&] { graph.add_input(name, type, role); });
  }

  Type parse_type() {
    const Token start = lexer_.peek();
    const std::string name = lexer_.expect_name("an element type");
    const std::optional<DType> dtype = parse_dtype(name);
    if (!dtype)
      lexer_.fail_at(start,
                     fmt::format("unknown element type {}; use f32, bf16, f16, i32, i64, u8 or bool", name));
    lexer_.expect("[");
    std::vector<int64_t> extents;
    while (!lexer_.accept("]")) {
      extents.push_back(parse_integer(lexer_, lexer_.take()));
      if (extents.size() > Shape::kMaxRank)
        lexer_.fail_at(start, fmt::format("a shape has at most {} axes", static_cast<int>(Shape::kMaxRank)));
      if (!lexer_.at("]")) lexer_.expect(",");
    }
    Type type;
    guarded(start, [&] { type = Type{*dtype, Shape(extents)}; });
    return type;
  }

  // One statement of the body; false after `return`.
  bool parse_statement(Graph& graph) {
    const Token start = lexer_.peek();
    std::vector<std::string> names{lexer_.expect_name("a statement or 'return'")};
    if (names[0] == "return") {
      parse_return(graph);
      return false;
    }
    while (lexer_.accept(",")) names.push_back(lexer_.expect_name("the name of a result"));
    lexer_.expect("=");
    const Token op_token = lexer_.peek();
    const std::string op_name = lexer_.expect_name("the name of an op");
    lexer_.expect("(");
    std::vector<Value> inputs;
    while (!lexer_.accept(")")) {
      inputs.push_back(parse_operand(graph));
      if (!lexer_.at(")")) lexer_.expect(",");
    }
    Attributes attributes;
    if (lexer_.accept("{")) attributes = parse_attributes(lexer_);
    for (const std::string& name : names)
      if (graph.find(name).valid())
        lexer_.fail_at(start, fmt::format("{} is assigned twice; every value has one name of its own", name));
    guarded(op_token, [&] {
      const std::vector<Value> outputs = graph.emit_all(op_name, inputs, attributes);
      if (outputs.size() != names.size())
        throw UserError("{} has {} results, {} are named", op_name, outputs.size(), names.size());
      // Two rounds: a wanted name may equal the provisional name of a later result.
      for (size_t i = 0; i < outputs.size(); ++i) graph.rename(outputs[i], fmt::format("{}$", names[i]));
      for (size_t i = 0; i < outputs.size(); ++i) graph.rename(outputs[i], names[i]);
    });
    return true;
  }

  Value parse_operand(const Graph& graph) {
    const Token start = lexer_.peek();
    const std::string name = lexer_.expect_name("the name of a value");
    const Value value = graph.find(name);
    if (!value.valid())
      lexer_.fail_at(
          start,
          fmt::format("{} is used before it is defined; a graph has no cycles and lists values in order",
                      name));
    return value;
  }

  void parse_return(Graph& graph) {
    while (!lexer_.at("}")) {
      const Token start = lexer_.peek();
      Value value = parse_operand(graph);
      if (lexer_.accept("<-")) {
        const Value target = value;
        value = parse_operand(graph);
        if (graph.producer(target) >= 0)
          lexer_.fail_at(start, fmt::format("{} is not an input of the graph and cannot be written",
                                            graph.name(target)));
        check_update(graph, start, target, value);
        graph.add_update(target, value);
      } else {
        graph.add_output(value);
      }
      if (!lexer_.at("}")) lexer_.expect(",");
    }
  }

  void check_update(const Graph& graph, const Token& start, Value target, Value value) {
    if (graph.type(target) != graph.type(value))
      lexer_.fail_at(
          start, fmt::format("{} is {} and cannot be written with {}, which is {}", graph.name(target),
                             to_string(graph.type(target)), graph.name(value), to_string(graph.type(value))));
    for (const GraphOutput& output : graph.outputs())
      if (output.target == target)
        lexer_.fail_at(start, fmt::format("{} is written twice", graph.name(target)));
  }

  void check_statistics(const Graph& graph) const {
    for (const GraphInput& input : graph.inputs()) {
      if (input.role != Role::kStatistic) continue;
      const bool written =
          std::any_of(graph.outputs().begin(), graph.outputs().end(),
                      [&](const GraphOutput& output) { return output.target == input.value; });
      if (!written || graph.type(input.value).dtype != DType::kF32)
        lexer_.fail(fmt::format("{} is a statistic: it must be f32 and written by the graph",
                                graph.name(input.value)));
    }
  }

  // Runs something that may throw a UserError about the graph and adds the place in the text to its message.
  template <typename Body>
  void guarded(const Token& token, const Body& body) {
    std::string what;
    try {
      body();
      return;
    } catch (const UserError& error) {
      what = error.what();
    }
    lexer_.fail_at(token, what);
  }

  Lexer lexer_;
  const OpSet& ops_;
};

}  // namespace

Graph parse_graph(std::string_view text, const OpSet& ops, std::string_view file) {
  if (text.size() > kMaxText)
    throw UserError("{}: the text has {} bytes; at most {} are read", file, text.size(), kMaxText);
  return Parser(text, ops, file).parse();
}

}  // namespace lockstep
