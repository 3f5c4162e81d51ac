// Pointwise ops: an ONNX op each, or two. Operands are taken before their broadcasts, which ONNX does itself.
#include <algorithm>
#include <cmath>

#include "onnx/onnx_ops.h"

namespace lockstep {
namespace {

// The names of the operands, and how the result lies: channels first only where all that have an element per
// pixel do.
struct Operands {
  std::vector<std::string> names;
  OnnxValue lies;
};

Operands operands_of(OnnxLowering& onnx, const Node& node) {
  std::vector<OnnxValue> values;
  for (const Value input : node.inputs) values.push_back(onnx.lying(input));
  const auto single = [](const OnnxValue& value) {
    return std::all_of(value.dims.begin(), value.dims.end(), [](const OnnxDim& dim) { return dim.is_one(); });
  };
  const bool first =
      std::any_of(values.begin(), values.end(), [](const OnnxValue& value) { return value.channels_first; });
  const bool all = std::all_of(values.begin(), values.end(),
                               [&](const OnnxValue& value) { return value.channels_first || single(value); });
  Operands result;
  result.lies.channels_first = first && all;
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i].channels_first && !all) values[i].name = onnx.full(node.inputs[i]);
    result.names.push_back(values[i].name);
    result.lies.dims = broadcast_dims(result.lies.dims, values[i].dims);
  }
  return result;
}

void lower_as(OnnxLowering& onnx, const Node& node, std::string_view type,
              std::vector<OnnxAttribute> attributes = {}) {
  const Operands operands = operands_of(onnx, node);
  onnx.result(node, type, operands.names, std::move(attributes), operands.lies);
}

void lower_rsqrt(OnnxLowering& onnx, const Node& node) {
  const Operands operands = operands_of(onnx, node);
  onnx.result(node, "Reciprocal", {onnx.node("Sqrt", operands.names)}, {}, operands.lies);
}

void lower_clamp(OnnxLowering& onnx, const Node& node) {
  Operands operands = operands_of(onnx, node);
  const OnnxType type = onnx.type(node.inputs[0]);
  for (const char* bound : {"low", "high"}) {
    const double value = node.attributes.number(bound);
    operands.names.push_back(std::isfinite(value) ? onnx.scalar(value, type) : "");
  }
  onnx.result(node, "Clip", operands.names, {}, operands.lies);
}

void lower_compare(OnnxLowering& onnx, const Node& node) {
  const std::string& order = node.attributes.text("op");
  const Operands operands = operands_of(onnx, node);
  if (order == "ne") return onnx.result(node, "Not", {onnx.node("Equal", operands.names)}, {}, operands.lies);
  const std::string_view type = order == "eq"   ? "Equal"
                                : order == "lt" ? "Less"
                                : order == "le" ? "LessOrEqual"
                                : order == "gt" ? "Greater"
                                                : "GreaterOrEqual";
  onnx.result(node, type, operands.names, {}, operands.lies);
}

void lower_cast(OnnxLowering& onnx, const Node& node) {
  const OnnxType to = onnx_type(node.attributes.dtype("dtype"));
  if (to == onnx.type(node.inputs[0])) return onnx.is(node.outputs[0], onnx.lying(node.inputs[0]));
  lower_as(onnx, node, "Cast", {{"to", static_cast<int64_t>(to)}});
}

void lower_nothing(OnnxLowering& onnx, const Node& node) {
  onnx.is(node.outputs[0], onnx.lying(node.inputs[0]));
}

#define LOCKSTEP_ONNX_SAME(X) \
  X(add, Add)                 \
  X(sub, Sub)                 \
  X(mul, Mul)                 \
  X(div, Div)                 \
  X(neg, Neg)                 \
  X(exp, Exp)                 \
  X(log, Log)                 \
  X(sqrt, Sqrt)               \
  X(pow, Pow)                 \
  X(tanh, Tanh)               \
  X(erf, Erf)                 \
  X(sigmoid, Sigmoid)         \
  X(relu, Relu)               \
  X(abs, Abs)                 \
  X(sign, Sign)               \
  X(minimum, Min)             \
  X(maximum, Max)             \
  X(where, Where)             \
  X(logical_not, Not)

#define ENTRY(ours, theirs) \
  {#ours, [](OnnxLowering& onnx, const Node& node) { lower_as(onnx, node, #theirs); }},
constexpr OnnxOp kOps[] = {LOCKSTEP_ONNX_SAME(ENTRY)  //
                           {"rsqrt", lower_rsqrt},
                           {"clamp", lower_clamp},
                           {"compare", lower_compare},
                           {"cast", lower_cast},
                           {"checkpoint", lower_nothing}};
#undef ENTRY

}  // namespace

std::span<const OnnxOp> onnx_pointwise_ops() { return kOps; }

}  // namespace lockstep
