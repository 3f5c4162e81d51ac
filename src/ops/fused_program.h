// FusedProgram: the body of a `fused` node, and its text form:
//
//   t0 = add(a0, a1); t1 = gelu(t0) {approximate="tanh"}; t2 = mul(t1, 0.5); return t2, t0
//
// a0, a1, ... are the node's operands, each broadcast to the node's shape where it is read. A number is a
// constant of that shape: f32, or another type written after it (0.5:bf16). Statements are pointwise ops; the
// last one may be a sum or a mean of an earlier value. `return` lists the statements that are stored.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "graph/op_def.h"

namespace lockstep {

struct FusedArgument {
  enum class Kind : uint8_t { kOperand, kStatement, kNumber };
  Kind kind = Kind::kNumber;
  int index = 0;
  double number = 0;
  DType dtype = DType::kF32;  // of a number
  bool operator==(const FusedArgument&) const = default;
};

struct FusedStatement {
  const OpDef* op = nullptr;
  std::vector<FusedArgument> arguments;
  Attributes attributes;
};

struct FusedProgram {
  std::vector<FusedStatement> statements;
  std::vector<int> results;
};

// Attributes must be complete, as in a node.
std::string to_text(const FusedProgram& program);

// Throws UserError with the place in the text. Checks structure (names, order, which ops may appear); types
// are checked when the program is unfolded.
FusedProgram parse_fused_program(std::string_view text, const OpSet& ops, int operands);

// Emits the program over `operands` as broadcasts, constants and simple ops; returns its results.
std::vector<Value> unfold(Graph& graph, const FusedProgram& program, const Shape& shape,
                          std::span<const Value> operands);

}  // namespace lockstep
