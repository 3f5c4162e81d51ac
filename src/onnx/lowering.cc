#include "onnx/lowering.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "onnx/onnx_ops.h"

namespace lockstep {
namespace {

template <typename T>
void append(std::string& bytes, T value) {
  const size_t at = bytes.size();
  bytes.resize(at + sizeof value);
  std::memcpy(&bytes[at], &value, sizeof value);
}

std::vector<int64_t> extents_of(const Shape& shape) { return {shape.begin(), shape.end()}; }

}  // namespace

OnnxAttribute permutation(std::vector<int64_t> axes) { return {"perm", std::move(axes)}; }

OnnxDims broadcast_dims(const OnnxDims& a, const OnnxDims& b) {
  const OnnxDims& longer = a.size() >= b.size() ? a : b;
  const OnnxDims& shorter = a.size() >= b.size() ? b : a;
  OnnxDims dims = longer;
  const size_t lead = longer.size() - shorter.size();
  for (size_t i = 0; i < shorter.size(); ++i)
    if (dims[lead + i].is_one()) dims[lead + i] = shorter[i];
  return dims;
}

OnnxLowering::OnnxLowering(const Graph& graph, std::vector<OnnxDims> dims)
    : graph_(graph),
      dims_(std::move(dims)),
      read_(static_cast<size_t>(graph.value_count())),
      values_(static_cast<size_t>(graph.value_count())) {
  LOCKSTEP_CHECK(dims_.size() == values_.size(), "extents of {} values, not {}", dims_.size(),
                 values_.size());
  model_.name = graph.name();
  for (const Node& node : graph.nodes())
    for (const Value input : node.inputs) read_[static_cast<size_t>(input.id)] = true;
  for (const GraphOutput& output : graph.outputs()) read_[static_cast<size_t>(output.value.id)] = true;
}

OnnxModel OnnxLowering::run() && {
  for (const GraphInput& input : graph_.inputs()) add_input(input);
  for (const Node& node : graph_.nodes()) {
    at_ = &node;
    const LowerToOnnx lower = find_onnx_op(graph_, node);
    if (lower == nullptr) refuse(node, "there is no form of it there, and it is made of no simpler ops");
    lower(*this, node);
  }
  at_ = nullptr;
  for (const GraphOutput& output : graph_.outputs()) {
    const std::string& name = graph_.name(output.value);
    if (const std::string lies = full(output.value); lies != name) add("Identity", {lies}, {}, name);
    model_.outputs.push_back({name, type(output.value), dims(output.value)});
  }
  return std::move(model_);
}

void OnnxLowering::add_input(const GraphInput& input) {
  const std::string& name = graph_.name(input.value);
  is(input.value, {name, dims(input.value)});
  if (input.role == Role::kInput) model_.inputs.push_back({name, type(input.value), dims(input.value)});
}

void OnnxLowering::refuse(const Node& node, std::string_view why) const {
  throw UserError("cannot export {} to ONNX: {}", describe(graph_, *node.op, node.inputs), why);
}

// A weight is there from when it is first asked for, and in one order: nobody reads a filter in both.
OnnxValue OnnxLowering::lying(Value value) {
  const bool is_weight = graph_.producer(value) < 0 && graph_.role(value) != Role::kInput;
  if (is_weight) {
    const auto [known, added] = weights_.emplace(value.id, false);
    if (known->second)
      throw UserError("cannot export {} to ONNX: it is a filter of a convolution and something else too",
                      graph_.name(value));
    const Type& type = graph_.type(value);
    if (added) model_.weights.push_back({graph_.name(value), type.dtype, extents_of(type.shape), false});
  }
  return values_[static_cast<size_t>(value.id)];
}

std::string OnnxLowering::filter(Value value) {
  if (graph_.producer(value) >= 0 || graph_.role(value) == Role::kInput)
    return node("Transpose", {full(value)}, {permutation({0, 3, 1, 2})});
  const auto [known, added] = weights_.emplace(value.id, true);
  if (!known->second) return node("Transpose", {full(value)}, {permutation({0, 3, 1, 2})});
  const Type& type = graph_.type(value);
  const Shape& shape = type.shape;
  if (added)
    model_.weights.push_back(
        {graph_.name(value), type.dtype, {shape[0], shape[3], shape[1], shape[2]}, true});
  return graph_.name(value);
}

std::string OnnxLowering::full(Value value) {
  const OnnxValue lies = lying(value);
  if (lies.channels_first) {
    std::string& known = known_["last " + lies.name];
    if (known.empty()) known = node("Transpose", {lies.name}, {permutation({0, 2, 3, 1})});
    return known;
  }
  if (lies.dims == dims(value)) return lies.name;
  return expanded(lies, dims(value));
}

std::string OnnxLowering::channels_first(Value value) {
  const OnnxValue lies = lying(value);
  if (lies.channels_first) return lies.name;
  const std::string whole = full(value);
  std::string& known = known_["first " + whole];
  if (known.empty()) known = node("Transpose", {whole}, {permutation({0, 3, 1, 2})});
  return known;
}

// Expand leaves an extent alone where 1 is asked for, so that an open one that is there already needs no
// name.
std::string OnnxLowering::expanded(const OnnxValue& value, const OnnxDims& to) {
  std::string key = "expand " + value.name;
  for (const OnnxDim& dim : to) key += fmt::format(" {}{}", dim.extent, dim.batch ? "b" : "");
  if (const auto found = known_.find(key); found != known_.end()) return found->second;
  const size_t lead = to.size() - value.dims.size();
  std::vector<std::string> pieces;
  std::vector<int64_t> fixed;
  const auto close_piece = [&] {
    if (!fixed.empty()) pieces.push_back(integers(fixed));
    fixed.clear();
  };
  for (size_t i = 0; i < to.size(); ++i) {
    const bool there = i >= lead && value.dims[i - lead] == to[i];
    if (!to[i].batch || there) {
      fixed.push_back(there ? 1 : to[i].extent);
      continue;
    }
    close_piece();
    pieces.push_back(to[i].extent == 1 ? batch_size()
                                       : node("Mul", {batch_size(), integers({to[i].extent})}));
  }
  close_piece();
  const std::string shape = pieces.size() == 1 ? pieces[0] : node("Concat", pieces, {{"axis", int64_t{0}}});
  return known_[key] = node("Expand", {value.name, shape});
}

std::string OnnxLowering::batch_size() {
  std::string& known = known_["batch size"];
  if (!known.empty()) return known;
  for (const OnnxPort& port : model_.inputs)
    if (!port.dims.empty() && port.dims[0] == OnnxDim{1, true})
      return known = node("Shape", {port.name}, {{"start", int64_t{0}}, {"end", int64_t{1}}});
  throw UserError("cannot export {} to ONNX: no input has one entry per sample", graph_.name());
}

std::string OnnxLowering::add(std::string_view type, std::vector<std::string> inputs,
                              std::vector<OnnxAttribute> attributes, std::string output) {
  model_.nodes.push_back({std::string(type), std::move(inputs), {output}, std::move(attributes)});
  return output;
}

// '/' is in no name of a graph.
std::string OnnxLowering::node(std::string_view type, std::vector<std::string> inputs,
                               std::vector<OnnxAttribute> attributes) {
  const std::string& owner = at_ == nullptr ? graph_.name() : graph_.name(at_->outputs[0]);
  return add(type, std::move(inputs), std::move(attributes), fmt::format("{}/{}_{}", owner, type, next_++));
}

void OnnxLowering::result(const Node& of, std::string_view type, std::vector<std::string> inputs,
                          std::vector<OnnxAttribute> attributes) {
  result(of, type, std::move(inputs), std::move(attributes), {"", dims(of.outputs[0])});
}

void OnnxLowering::result(const Node& of, std::string_view type, std::vector<std::string> inputs,
                          std::vector<OnnxAttribute> attributes, OnnxValue lies) {
  const Value value = of.outputs[0];
  // An output's own name is for what the caller gets: every element, channels last.
  const bool complete = !lies.channels_first && lies.dims == dims(value);
  const bool is_output = std::any_of(graph_.outputs().begin(), graph_.outputs().end(),
                                     [&](const GraphOutput& output) { return output.value == value; });
  lies.name = is_output && !complete
                  ? node(type, std::move(inputs), std::move(attributes))
                  : add(type, std::move(inputs), std::move(attributes), graph_.name(value));
  is(value, std::move(lies));
}

void OnnxLowering::is(Value value, OnnxValue lies) {
  values_[static_cast<size_t>(value.id)] = std::move(lies);
}

std::string OnnxLowering::scalar(double value, OnnxType type) {
  std::string bytes;
  switch (type) {
    case OnnxType::kFloat: append(bytes, static_cast<float>(value)); break;
    case OnnxType::kInt64: append(bytes, static_cast<int64_t>(value)); break;
    case OnnxType::kBool: append(bytes, static_cast<uint8_t>(value != 0)); break;
    case OnnxType::kFloat16: append(bytes, to_f16(static_cast<float>(value))); break;
    case OnnxType::kBFloat16: append(bytes, to_bf16(static_cast<float>(value))); break;
  }
  return constant(type, {}, std::move(bytes));
}

std::string OnnxLowering::integers(const std::vector<int64_t>& values) {
  std::string bytes;
  for (const int64_t value : values) append(bytes, value);
  return constant(OnnxType::kInt64, {static_cast<int64_t>(values.size())}, std::move(bytes));
}

std::string OnnxLowering::constant(OnnxType type, std::vector<int64_t> dims, std::string bytes) {
  std::string& known =
      known_[fmt::format("constant {} [{}] ", static_cast<int>(type), fmt::join(dims, ",")) + bytes];
  if (!known.empty()) return known;
  known = fmt::format("constant/{}", model_.constants.size());
  model_.constants.push_back({known, type, std::move(dims), std::move(bytes)});
  return known;
}

std::string OnnxLowering::target(const Node& of, const OnnxDims& dims) {
  std::vector<int64_t> extents;
  for (const OnnxDim& dim : dims) extents.push_back(dim.batch ? -1 : dim.extent);
  if (std::count(extents.begin(), extents.end(), -1) > 1)
    refuse(of, "two extents of its result grow with the batch");
  return integers(extents);
}

}  // namespace lockstep
