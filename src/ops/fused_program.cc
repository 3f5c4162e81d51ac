#include "ops/fused_program.h"

#include <algorithm>

#include "base/error.h"
#include "graph/attribute_parser.h"
#include "graph/text.h"
#include "ops/builder.h"

namespace lockstep {
namespace {

std::string argument_text(const FusedArgument& argument) {
  switch (argument.kind) {
    case FusedArgument::Kind::kOperand: return fmt::format("a{}", argument.index);
    case FusedArgument::Kind::kStatement: return fmt::format("t{}", argument.index);
    case FusedArgument::Kind::kNumber: break;
  }
  const std::string number = to_string(Attribute(argument.number));
  return argument.dtype == DType::kF32 ? number : fmt::format("{}:{}", number, name_of(argument.dtype));
}

class ProgramParser {
 public:
  ProgramParser(std::string_view text, const OpSet& ops, int operands)
      : lexer_(text, "program"), ops_(ops), operands_(operands) {}

  FusedProgram parse() {
    for (;;) {
      const Token start = lexer_.peek();
      const std::string name = lexer_.expect_name("a statement or 'return'");
      if (name == "return") break;
      parse_statement(start, name);
      lexer_.expect(";");
    }
    do {
      const Token start = lexer_.peek();
      const FusedArgument result = parse_argument();
      if (result.kind != FusedArgument::Kind::kStatement)
        lexer_.fail_at(start, "only a statement can be returned");
      if (std::count(program_.results.begin(), program_.results.end(), result.index) != 0)
        lexer_.fail_at(start, "a statement is returned twice");
      program_.results.push_back(result.index);
    } while (lexer_.accept(","));
    if (lexer_.peek().kind != Token::Kind::kEnd) lexer_.fail("text after the end of the program");
    return std::move(program_);
  }

 private:
  void parse_statement(const Token& start, const std::string& name) {
    const std::string expected = fmt::format("t{}", program_.statements.size());
    if (name != expected)
      lexer_.fail_at(start, fmt::format("statements are named in order: write {}", expected));
    if (!program_.statements.empty() && program_.statements.back().op->traits.reduction)
      lexer_.fail_at(start, "a statement follows a reduction; a reduction comes last");
    lexer_.expect("=");
    const Token op_token = lexer_.peek();
    FusedStatement statement{&ops_.get(lexer_.expect_name("the name of an op")), {}, {}};
    if (!statement.op->traits.pointwise && statement.op->name != "sum" && statement.op->name != "mean")
      lexer_.fail_at(op_token, fmt::format("{} is not pointwise, nor sum nor mean", statement.op->name));
    lexer_.expect("(");
    while (!lexer_.accept(")")) {
      statement.arguments.push_back(parse_argument());
      if (!lexer_.at(")")) lexer_.expect(",");
    }
    if (lexer_.accept("{")) statement.attributes = parse_attributes(lexer_);
    program_.statements.push_back(std::move(statement));
  }

  FusedArgument parse_argument() {
    const Token token = lexer_.take();
    const bool word = token.kind == Token::Kind::kName;
    if (word && token.text != "inf" && token.text != "nan") return parse_reference(token);
    const Attribute number = parse_number(lexer_, token);
    FusedArgument argument;
    argument.number = std::holds_alternative<double>(number) ? std::get<double>(number)
                                                             : static_cast<double>(std::get<int64_t>(number));
    if (lexer_.accept(":")) {
      const Token at = lexer_.peek();
      const auto dtype = parse_dtype(lexer_.expect_name("an element type"));
      if (!dtype) lexer_.fail_at(at, "not an element type");
      argument.dtype = *dtype;
    }
    return argument;
  }

  FusedArgument parse_reference(const Token& token) const {
    for (const auto kind : {FusedArgument::Kind::kOperand, FusedArgument::Kind::kStatement}) {
      const bool operand = kind == FusedArgument::Kind::kOperand;
      const int count = operand ? operands_ : static_cast<int>(program_.statements.size());
      for (int index = 0; index < count; ++index)
        if (token.text == fmt::format("{}{}", operand ? 'a' : 't', index))
          return {kind, index, 0, DType::kF32};
    }
    lexer_.fail_at(token, fmt::format("{} is neither an operand (there are {}) nor an earlier statement",
                                      token.text, operands_));
  }

  Lexer lexer_;
  const OpSet& ops_;
  int operands_;
  FusedProgram program_;
};

}  // namespace

std::string to_text(const FusedProgram& program) {
  std::string out;
  for (size_t i = 0; i < program.statements.size(); ++i) {
    const FusedStatement& statement = program.statements[i];
    std::string arguments;
    for (const FusedArgument& argument : statement.arguments)
      arguments += (arguments.empty() ? "" : ", ") + argument_text(argument);
    out += fmt::format("t{} = {}({}){}; ", i, statement.op->name, arguments,
                       attribute_text(*statement.op, statement.attributes));
  }
  out += "return ";
  for (size_t i = 0; i < program.results.size(); ++i)
    out += fmt::format("{}t{}", i == 0 ? "" : ", ", program.results[i]);
  return out;
}

FusedProgram parse_fused_program(std::string_view text, const OpSet& ops, int operands) {
  return ProgramParser(text, ops, operands).parse();
}

std::vector<Value> unfold(Graph& graph, const FusedProgram& program, const Shape& shape,
                          std::span<const Value> operands) {
  Builder b(graph);
  std::vector<Value> full(operands.size());
  std::vector<Value> values;
  const auto value_of = [&](const FusedArgument& argument) {
    const auto index = static_cast<size_t>(argument.index);
    if (argument.kind == FusedArgument::Kind::kStatement) return values[index];
    if (argument.kind == FusedArgument::Kind::kNumber)
      return graph.emit("constant", {},
                        {{"value", argument.number},
                         {"shape", std::vector<int64_t>(shape.begin(), shape.end())},
                         {"dtype", argument.dtype}});
    if (!full[index].valid()) full[index] = b.broadcast(operands[index], shape);
    return full[index];
  };
  for (const FusedStatement& statement : program.statements) {
    std::vector<Value> arguments;
    for (const FusedArgument& argument : statement.arguments) arguments.push_back(value_of(argument));
    values.push_back(graph.emit_all(*statement.op, arguments, statement.attributes).at(0));
  }
  std::vector<Value> results;
  for (const int result : program.results) results.push_back(values[static_cast<size_t>(result)]);
  return results;
}

}  // namespace lockstep
