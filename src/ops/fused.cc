// fused(a0, a1, ...) {program, shape}: several pointwise ops in a single sweep; fused_sum: the same, ending
// in a sum or mean, which is its first result. Made by the pass `fuse`; fused_program.h describes the
// program. The results have the bits of the ops run one by one.
#include "ops/fused.h"

#include "ops/builder.h"
#include "ops/fused_program.h"
#include "ops/indexing.h"

namespace lockstep {
namespace {

Shape region_shape(const Attributes& attributes) { return Shape(attributes.integers("shape")); }

FusedProgram program_of(const OpSet& ops, const Attributes& attributes, int operands) {
  return parse_fused_program(attributes.text("program"), ops, operands);
}

const FusedStatement* sum_of(const FusedProgram& program) {
  const bool found = !program.statements.empty() && program.statements.back().op->traits.reduction;
  return found ? &program.statements.back() : nullptr;
}

Graph body_of(const OpSet& ops, const Attributes& attributes, const std::vector<Type>& operands) {
  Graph body(ops, "body");
  std::vector<Value> inputs;
  for (const Type& type : operands) inputs.push_back(body.add_input(fmt::format("a{}", inputs.size()), type));
  const FusedProgram program = program_of(ops, attributes, static_cast<int>(operands.size()));
  for (const Value result : unfold(body, program, region_shape(attributes), inputs)) body.add_output(result);
  return body;
}

std::vector<Type> infer(const InferContext& c) {
  const Shape shape = region_shape(c.attributes());
  std::vector<Type> operands;
  for (int i = 0; i < c.count(); ++i) {
    Shape common;
    if (!broadcast_shapes(c.shape(i), shape, &common) || common != shape)
      c.fail("operand {} of shape {} does not broadcast to {}", i, to_string(c.shape(i)), to_string(shape));
    operands.push_back(c.type(i));
  }
  const Graph body = body_of(c.ops(), c.attributes(), operands);
  if (body.outputs().size() > kMaxFusedResults)
    c.fail("{} results; at most {} are allowed", body.outputs().size(), kMaxFusedResults);
  std::vector<Type> types;
  for (const GraphOutput& output : body.outputs()) types.push_back(body.type(output.value));
  return types;
}

std::vector<Type> infer_fused(const InferContext& c) {
  std::vector<Type> types = infer(c);
  if (sum_of(program_of(c.ops(), c.attributes(), c.count())) != nullptr)
    c.fail("the program has a sum: use fused_sum");
  return types;
}

std::vector<Type> infer_fused_sum(const InferContext& c) {
  const FusedProgram program = program_of(c.ops(), c.attributes(), c.count());
  if (sum_of(program) == nullptr || program.results.at(0) + 1 != static_cast<int>(program.statements.size()))
    c.fail("the last statement must be a sum or mean, and the first result");
  return infer(c);
}

std::vector<ShardingSignature> replicated(const Graph&, const Node& node) {
  return {{std::vector<Placement>(node.inputs.size(), Placement::replicate()),
           std::vector<Placement>(node.outputs.size(), Placement::replicate())}};
}

// All operands follow a split of the region.
std::vector<ShardingSignature> shard(const Graph& graph, const Node& node) {
  const Shape shape = region_shape(node.attributes);
  std::vector<ShardingSignature> signatures = replicated(graph, node);
  for (int axis = 0; axis < shape.rank(); ++axis) {
    ShardingSignature signature{{}, std::vector<Placement>(node.outputs.size(), Placement::split(axis))};
    for (const Value input : node.inputs) {
      const Shape& own = graph.type(input).shape;
      const int source = axis - (shape.rank() - own.rank());
      const bool repeated = source < 0 || own[source] != shape[axis];
      signature.inputs.push_back(repeated ? Placement::replicate() : Placement::split(source));
    }
    signatures.push_back(std::move(signature));
  }
  return signatures;
}

OpDef make_fused(std::string_view name, std::string_view summary) {
  OpDef def{.name = name, .summary = summary};
  def.attributes = {{"program", std::string(), "the statements, as t0 = add(a0, a1); return t0", true},
                    {"shape", std::vector<int64_t>{}, "what operands are broadcast to", true}};
  def.min_inputs = 1;
  def.max_inputs = kMaxFusedOperands;
  def.traits = {.recompute_cheap = true};
  def.stage = Stage::kFused;
  def.decompose = [](Graph& graph, const Node& node, std::span<const Value> inputs) {
    const FusedProgram program = program_of(graph.ops(), node.attributes, static_cast<int>(inputs.size()));
    return unfold(graph, program, region_shape(node.attributes), inputs);
  };
  def.cost = [](const Graph& graph, const Node& node) {
    const FusedProgram program =
        program_of(graph.ops(), node.attributes, static_cast<int>(node.inputs.size()));
    const double elements = static_cast<double>(region_shape(node.attributes).numel());
    return Cost{static_cast<double>(program.statements.size()) * elements, touched_bytes(graph, node)};
  };
  return def;
}

// The sum of fused_sum is written while operands are still read, so it never shares their memory.
void allow_inplace(OpDef& def, int first_result) {
  for (int input = 0; input < kMaxFusedOperands; ++input)
    for (int output = first_result; output < kMaxFusedResults; ++output)
      def.inplace.push_back({input, output});
}

}  // namespace

Graph fused_body(const Graph& graph, const Node& node) {
  std::vector<Type> operands;
  for (const Value input : node.inputs) operands.push_back(graph.type(input));
  return body_of(graph.ops(), node.attributes, operands);
}

OpDef fused_op() {
  OpDef def = make_fused("fused", "several pointwise ops in one sweep");
  def.infer = infer_fused;
  def.sharding = shard;
  allow_inplace(def, 0);
  return def;
}

OpDef fused_sum_op() {
  OpDef def = make_fused("fused_sum", "several pointwise ops and a sum of one of them in one sweep");
  def.traits.reduction = true;
  def.infer = infer_fused_sum;
  def.sharding = replicated;
  allow_inplace(def, 1);
  return def;
}

}  // namespace lockstep
