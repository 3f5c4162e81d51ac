#include "ops/rounded_update.h"

#include "ops/optimizer.h"
#include "ops/stochastic_rounding.h"

namespace lockstep {
namespace {

constexpr int kScalars = 3;  // scale, lr, step

bool is_rounding(const Type& type) { return type == Type{DType::kI64, {2}}; }

void require_draws(const InferContext& c) {
  const auto& numbers = c.attributes().integers("draws");
  if (numbers.size() % 3 != 0)
    c.fail("draws lists triples of begin, key and first; it has {} numbers", numbers.size());
  if (numbers.empty() != (c.shape(0).numel() == 0)) c.fail("draws must say whose draws the elements take");
  int64_t reached = -1;
  for (const DrawSegment& segment : draw_segments(c.attributes())) {
    const bool rises = reached < 0 ? segment.begin == 0 : segment.begin > reached;
    if (!rises || segment.begin >= c.shape(0).numel())
      c.fail("draws must begin at 0, rise and stay within the buffer; {} does not", segment.begin);
    if (segment.begin % kDrawBlock != 0 || segment.first < 0 || segment.first % kDrawBlock != 0)
      c.fail("begin and first of draws must be multiples of {}, they are {} and {}", kDrawBlock,
             segment.begin, segment.first);
    reached = segment.begin;
  }
}

// x is result `result` of an update, in f32.
Value rounded(Builder& b, Value x, Value rounding, const Attributes& attributes, size_t result) {
  const std::vector<DrawSegment> segments = draw_segments(attributes);
  const int64_t numel = b.shape(x).numel();
  if (segments.empty()) return b.cast(x, DType::kBF16);
  std::vector<Value> pieces;
  for (size_t i = 0; i < segments.size(); ++i) {
    const int64_t end = i + 1 < segments.size() ? segments[i + 1].begin : numel;
    const Value piece = b.slice(x, 0, segments[i].begin, end);
    pieces.push_back(b.op("round_stochastic", {piece, rounding},
                          {{"key", result_key(segments[i].key, result)}, {"first", segments[i].first}}));
  }
  return pieces.size() == 1 ? pieces[0] : b.graph().emit_all("concat", pieces, {{"axis", int64_t{0}}})[0];
}

}  // namespace

AttributeDef draws_attribute() {
  return {"draws", std::vector<int64_t>{}, "triples (begin, key, first): whose draws round bf16 results"};
}

std::vector<DrawSegment> draw_segments(const Attributes& attributes) {
  const auto& numbers = attributes.integers("draws");
  std::vector<DrawSegment> segments;
  for (size_t i = 0; i + 2 < numbers.size(); i += 3)
    segments.push_back({numbers[i], numbers[i + 1], numbers[i + 2]});
  return segments;
}

int rounding_operand(const Graph& graph, std::span<const Value> inputs) {
  const auto operand = static_cast<int>(inputs.size()) - kScalars - 1;
  return operand >= 2 && is_rounding(graph.type(inputs[static_cast<size_t>(operand)])) ? operand : -1;
}

int rounding_operand(const InferContext& context) {
  const int operand = context.count() - kScalars - 1;
  return operand >= 2 && is_rounding(context.type(operand)) ? operand : -1;
}

std::vector<Type> infer_rounded_update(const InferContext& c, int states) {
  if (c.type(0).dtype != DType::kBF16 || c.shape(0).rank() != 1)
    c.fail("operand 0 must be a flat bf16 buffer where rounding is given");
  c.require_same_type(1, 0);
  std::vector<Type> results{c.type(0)};
  for (int operand = 2; operand < 2 + states; ++operand) {
    const Type& type = c.type(operand);
    if (type.shape != c.shape(0) || (type.dtype != DType::kF32 && type.dtype != DType::kBF16))
      c.fail("operand {} must be f32 or bf16 and as long as operand 0", operand);
    if (type.dtype != c.type(2).dtype) c.fail("the optimizer's buffers must have one element type");
    results.push_back(type);
  }
  require_step_scalars(c);
  require_ranges(c, "no_decay");
  require_draws(c);
  return results;
}

void round_results(const ReferenceContext& c) {
  const size_t operand = c.inputs.size() - kScalars - 1;
  if (operand < 2 || !is_rounding(c.inputs[operand]->type)) return;
  const RefTensor& rounding = *c.inputs[operand];
  const auto seed = static_cast<uint64_t>(static_cast<int64_t>(rounding[0]));
  const std::vector<DrawSegment> segments = draw_segments(c.attributes);
  for (size_t result = 0; result < c.outputs.size(); ++result) {
    RefTensor& x = c.outputs[result];
    if (x.type.dtype != DType::kBF16) continue;
    for (size_t i = 0; i < segments.size(); ++i) {
      const int64_t end = i + 1 < segments.size() ? segments[i + 1].begin : x.numel();
      const uint64_t stream =
          rounding_stream(result_key(segments[i].key, result), static_cast<int64_t>(rounding[1]));
      const Philox random(seed, stream);
      for (int64_t at = segments[i].begin; at < end; ++at)
        x[at] = round_stochastically(
            static_cast<float>(x[at]),
            random.bits(static_cast<uint64_t>(segments[i].first + at - segments[i].begin)));
    }
  }
}

std::vector<Value> decompose_rounded(Graph& graph, const Node& node, std::span<const Value> inputs) {
  Builder b(graph);
  const auto operand = static_cast<size_t>(rounding_operand(graph, inputs));
  std::vector<Value> wide;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (i != operand) wide.push_back(i < operand ? b.cast(inputs[i], DType::kF32) : inputs[i]);
  Attributes attributes;
  for (const auto& [name, value] : node.attributes.entries())
    if (name != "draws") attributes.set(name, value);
  std::vector<Value> results = graph.emit_all(node.op->name, wide, attributes);
  for (size_t i = 0; i < results.size(); ++i) {
    const Value updated = inputs[i == 0 ? 0 : i + 1];
    if (b.type(updated).dtype == DType::kBF16)
      results[i] = rounded(b, results[i], inputs[operand], node.attributes, i);
  }
  return results;
}

}  // namespace lockstep
