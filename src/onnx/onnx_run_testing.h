// Runs a parsed ONNX model in the reference interpreter: every node by the definition of its op, told in our
// own ops, for inputs of any batch. Independent of the lowering: what that takes for granted (a batch that is
// open, images that lie channels first) is followed here as the format says it.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "graph/interpreter.h"
#include "onnx/onnx_parse_testing.h"
#include "ops/builder.h"
#include "ops/registry.h"

namespace lockstep::testing {

class OnnxRunner {
 public:
  // `inputs` by the model's names; whole numbers and masks as i32.
  OnnxRunner(const ParsedOnnx& model, const RefTensors& inputs)
      : graph_(all_ops(), "onnx"), b_(graph_), bound_(inputs) {
    for (const ParsedPort& port : model.inputs)
      values_[port.name] = graph_.add_input(port.name, inputs.at(port.name).type);
    for (const auto& [name, tensor] : model.tensors) add_tensor(name, tensor);
    for (const ParsedNode& node : model.nodes) {
      const auto found = steps().find(node.type);
      if (found == steps().end()) throw std::runtime_error("no step for " + node.type);
      for (const std::string& input : node.inputs)
        if (!input.empty() && !values_.contains(input))
          throw std::runtime_error(node.name + " reads " + input + " too early");
      if (!values_.emplace(node.outputs.at(0), found->second(*this, node)).second)
        throw std::runtime_error("two values are named " + node.outputs[0]);
    }
    for (const ParsedPort& port : model.outputs) graph_.add_output(values_.at(port.name));
  }

  std::vector<RefTensor> run() const { return interpret(graph_, bound_); }
  const Graph& graph() const { return graph_; }

 private:
  using Step = std::function<Value(OnnxRunner&, const ParsedNode&)>;

  void add_tensor(const std::string& name, const ParsedTensor& tensor) {
    const Shape shape(tensor.dims);
    const DType dtype = tensor.type == 1 ? DType::kF32 : tensor.type == 9 ? DType::kBool : DType::kI32;
    RefTensor values({dtype, shape});
    if (!tensor.bytes.empty() || shape.numel() == 0) {
      const DType stored = tensor.type == 7 ? DType::kI64 : dtype;
      if (static_cast<int64_t>(tensor.bytes.size()) != shape.numel() * size_of(stored))
        throw std::runtime_error(name + " has another size than its extents say");
      for (int64_t i = 0; i < shape.numel(); ++i) values[i] = read_element(stored, tensor.bytes.data(), i);
    } else {
      throw std::runtime_error(name + " has no bytes");
    }
    values_[name] = graph_.add_input(name, values.type);
    bound_[name] = std::move(values);
  }

  Value in(const ParsedNode& node, size_t i) const { return values_.at(node.inputs.at(i)); }
  const Shape& shape(Value value) const { return b_.shape(value); }
  // A constant operand, such as the axes of a reduction.
  std::vector<int64_t> numbers(const ParsedNode& node, size_t i) const {
    const RefTensor& tensor = bound_.at(node.inputs.at(i));
    return {tensor.data.begin(), tensor.data.end()};
  }

  // Operands that are broadcast together.
  std::vector<Value> together(const ParsedNode& node) {
    Shape common = shape(in(node, 0));
    for (size_t i = 1; i < node.inputs.size(); ++i)
      if (!broadcast_shapes(common, shape(in(node, i)), &common))
        throw std::runtime_error(node.name + ": operands do not broadcast");
    std::vector<Value> values;
    for (size_t i = 0; i < node.inputs.size(); ++i) values.push_back(b_.broadcast(in(node, i), common));
    return values;
  }
  static Step pointwise(std::string op) {
    return [op](OnnxRunner& r, const ParsedNode& node) { return r.graph_.emit_all(op, r.together(node))[0]; };
  }
  static Step compare(std::string order, bool negated = false) {
    return [order, negated](OnnxRunner& r, const ParsedNode& node) {
      const auto values = r.together(node);
      const Value holds = r.b_.compare(order, values[0], values[1]);
      return negated ? r.b_.op("logical_not", {holds}) : holds;
    };
  }
  static Step reduction(std::string op) {
    return [op](OnnxRunner& r, const ParsedNode& node) {
      const auto axes = node.inputs.size() > 1 ? r.numbers(node, 1) : node.wholes("axes");
      return r.b_.op(op, {r.in(node, 0)}, {{"axes", axes}, {"keep", node.whole("keepdims", 1) == 1}});
    };
  }
  static Step along(std::string op) {
    return [op](OnnxRunner& r, const ParsedNode& node) {
      return r.b_.op(op, {r.in(node, 0)}, {{"axis", node.whole("axis", -1)}});
    };
  }

  Value last(Value x) { return b_.transpose(x, {0, 2, 3, 1}); }
  Value first(Value x) { return b_.transpose(x, {0, 3, 1, 2}); }
  static Attributes window(const ParsedNode& node) {
    const auto pads = node.wholes("pads");
    return {{"stride", node.wholes("strides")},
            {"padding", std::vector<int64_t>{pads[0], pads[2], pads[1], pads[3]}}};
  }

  Value reshape(const ParsedNode& node) {
    std::vector<int64_t> to = numbers(node, 1);
    int64_t known = 1;
    for (const int64_t extent : to) known *= extent < 0 ? 1 : extent;
    for (int64_t& extent : to)
      if (extent < 0) extent = shape(in(node, 0)).numel() / known;
    return b_.reshape(in(node, 0), Shape(to));
  }
  Value expand(const ParsedNode& node) {
    Shape common;
    // A shape that was computed is known here: its node is Shape, Mul or Concat of such.
    const Shape wanted(bound_.contains(node.inputs[1]) ? numbers(node, 1) : computed(node.inputs[1]));
    if (!broadcast_shapes(shape(in(node, 0)), wanted, &common)) throw std::runtime_error("Expand");
    return b_.broadcast(in(node, 0), common);
  }
  std::vector<int64_t> computed(const std::string& name) const {
    const RefTensor value = interpret_value(name);
    return {value.data.begin(), value.data.end()};
  }
  RefTensor interpret_value(const std::string& name) const {
    Graph copy = graph_;
    copy.clear_outputs();
    copy.add_output(values_.at(name));
    return interpret(copy, bound_)[0];
  }
  Value shape_of(const ParsedNode& node) {
    const int64_t end = node.whole("end", shape(in(node, 0)).rank());
    RefTensor extents({DType::kI32, {end - node.whole("start", 0)}});
    for (int64_t i = 0; i < extents.numel(); ++i)
      extents[i] = static_cast<double>(shape(in(node, 0))[static_cast<int>(node.whole("start", 0) + i)]);
    const std::string name = node.outputs[0] + ".value";
    const Value value = graph_.add_input(name, extents.type);
    bound_[name] = std::move(extents);
    return value;
  }
  Value slice(const ParsedNode& node) {
    const int64_t axis = numbers(node, 3).at(0);
    return b_.slice(in(node, 0), axis, numbers(node, 1).at(0), numbers(node, 2).at(0));
  }
  Value concat(const ParsedNode& node) {
    std::vector<Value> pieces;
    for (size_t i = 0; i < node.inputs.size(); ++i) pieces.push_back(in(node, i));
    return graph_.emit_all("concat", pieces, {{"axis", node.whole("axis", 0)}})[0];
  }
  Value matmul(const ParsedNode& node) { return b_.matmul(in(node, 0), in(node, 1)); }
  Value gemm(const ParsedNode& node) {
    const Value product =
        b_.matmul(in(node, 0), in(node, 1), node.whole("transA", 0) == 1, node.whole("transB", 0) == 1);
    return node.inputs.size() == 2 ? product : b_.add(product, in(node, 2));
  }
  Value conv(const ParsedNode& node) {
    Attributes attributes = window(node);
    attributes.set("dilation", node.wholes("dilations"));
    attributes.set("groups", node.whole("group", 1));
    const Shape filter = shape(in(node, 1));
    if (node.wholes("kernel_shape") != std::vector<int64_t>{filter[2], filter[3]})
      throw std::runtime_error(node.name + ": kernel_shape is not the filter's");
    return first(b_.op("conv2d", {last(in(node, 0)), last(in(node, 1))}, attributes));
  }
  Value pool(const ParsedNode& node, std::string_view op, Attributes attributes) {
    attributes.set("kernel", node.wholes("kernel_shape"));
    return first(graph_.emit_all(op, std::vector<Value>{last(in(node, 0))}, attributes)[0]);
  }
  Value batch_norm(const ParsedNode& node) {
    const Value x = in(node, 0);
    const bool image = shape(x).rank() == 4;
    const std::vector<Value> operands = {image ? last(x) : x, in(node, 1), in(node, 2), in(node, 3),
                                         in(node, 4)};
    const Value y = graph_.emit_all(
        "batch_norm", operands,
        {{"epsilon", static_cast<double>(node.attributes.at("epsilon").number)}, {"training", false}})[0];
    return image ? first(y) : y;
  }
  Value layer_norm(const ParsedNode& node) {
    return b_.op("layer_norm", {in(node, 0), in(node, 1), in(node, 2)},
                 {{"epsilon", static_cast<double>(node.attributes.at("epsilon").number)}});
  }
  Value gather(const ParsedNode& node) {
    return b_.op("gather", {in(node, 0), in(node, 1)}, {{"axis", node.whole("axis", 0)}});
  }
  Value both(const ParsedNode& node) {
    const auto values = together(node);
    const Value product = b_.mul(b_.cast(values[0], DType::kF32), b_.cast(values[1], DType::kF32));
    return b_.cast(product, DType::kBool);
  }
  Value cast(const ParsedNode& node) {
    const int64_t to = node.whole("to", 0);
    return b_.cast(in(node, 0), to == 1 ? DType::kF32 : to == 9 ? DType::kBool : DType::kI32);
  }
  Value clip(const ParsedNode& node) {
    Attributes bounds;
    if (!node.inputs.at(1).empty()) bounds.set("low", bound_.at(node.inputs[1])[0]);
    if (node.inputs.size() > 2 && !node.inputs[2].empty()) bounds.set("high", bound_.at(node.inputs[2])[0]);
    return b_.op("clamp", {in(node, 0)}, bounds);
  }

  static const std::map<std::string, Step>& steps() {
    const auto member = [](Value (OnnxRunner::*step)(const ParsedNode&)) {
      return [step](OnnxRunner& r, const ParsedNode& node) { return (r.*step)(node); };
    };
    static const std::map<std::string, Step> all = {
        {"Add", pointwise("add")},
        {"Sub", pointwise("sub")},
        {"Mul", pointwise("mul")},
        {"Div", pointwise("div")},
        {"Neg", pointwise("neg")},
        {"Exp", pointwise("exp")},
        {"Log", pointwise("log")},
        {"Sqrt", pointwise("sqrt")},
        {"Pow", pointwise("pow")},
        {"Tanh", pointwise("tanh")},
        {"Erf", pointwise("erf")},
        {"Sigmoid", pointwise("sigmoid")},
        {"Relu", pointwise("relu")},
        {"Abs", pointwise("abs")},
        {"Sign", pointwise("sign")},
        {"Min", pointwise("minimum")},
        {"Max", pointwise("maximum")},
        {"Where", pointwise("where")},
        {"Not", pointwise("logical_not")},
        {"Equal", compare("eq")},
        {"Less", compare("lt")},
        {"LessOrEqual", compare("le")},
        {"Greater", compare("gt")},
        {"GreaterOrEqual", compare("ge")},
        {"ReduceMean", reduction("mean")},
        {"ReduceSum", reduction("sum")},
        {"ReduceMax", reduction("max")},
        {"Softmax", along("softmax")},
        {"LogSoftmax", along("log_softmax")},
        {"ArgMax", along("argmax")},
        {"Reciprocal",
         [](OnnxRunner& r, const ParsedNode& node) {
           const Value x = r.in(node, 0);
           return r.b_.div(r.b_.constant_like(1, x), x);
         }},
        {"Identity", [](OnnxRunner& r, const ParsedNode& node) { return r.in(node, 0); }},
        {"Transpose",
         [](OnnxRunner& r, const ParsedNode& node) {
           return r.b_.transpose(r.in(node, 0), node.wholes("perm"));
         }},
        {"MaxPool",
         [](OnnxRunner& r, const ParsedNode& node) { return r.pool(node, "max_pool2d", window(node)); }},
        {"AveragePool",
         [](OnnxRunner& r, const ParsedNode& node) {
           Attributes attributes = window(node);
           attributes.set("count_include_pad", node.whole("count_include_pad", 0) == 1);
           return r.pool(node, "avg_pool2d", attributes);
         }},
        {"Reshape", member(&OnnxRunner::reshape)},
        {"Expand", member(&OnnxRunner::expand)},
        {"Shape", member(&OnnxRunner::shape_of)},
        {"Slice", member(&OnnxRunner::slice)},
        {"Concat", member(&OnnxRunner::concat)},
        {"MatMul", member(&OnnxRunner::matmul)},
        {"Gemm", member(&OnnxRunner::gemm)},
        {"Conv", member(&OnnxRunner::conv)},
        {"BatchNormalization", member(&OnnxRunner::batch_norm)},
        {"LayerNormalization", member(&OnnxRunner::layer_norm)},
        {"Gather", member(&OnnxRunner::gather)},
        {"And", member(&OnnxRunner::both)},
        {"Cast", member(&OnnxRunner::cast)},
        {"Clip", member(&OnnxRunner::clip)}};
    return all;
  }

  Graph graph_;
  Builder b_;
  RefTensors bound_;
  std::map<std::string, Value> values_;
};

}  // namespace lockstep::testing
