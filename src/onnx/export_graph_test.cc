// Exported models, written, read back by the format's own numbers and run by the definitions of its ops: the
// same answers as the graph that they came from, for batches of any size.
#include "onnx/export_graph.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "base/file.h"
#include "base/philox.h"
#include "base/test_folder.h"
#include "model/family.h"
#include "onnx/forward.h"
#include "onnx/lowering.h"
#include "onnx/onnx_file.h"
#include "onnx/onnx_run_testing.h"

namespace lockstep {
namespace {

using testing::OnnxRunner;
using testing::parse_onnx;
using testing::ParsedOnnx;

// Numbers that are a function of the name: the same for every batch, weights positive where they must be.
RefTensor drawn(const std::string& name, const Type& type, int64_t bound) {
  uint64_t stream = 1469598103934665603ull;
  for (const char c : name) stream = (stream ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  const Philox random(7, stream);
  RefTensor tensor(type);
  for (int64_t i = 0; i < tensor.numel(); ++i) {
    const auto at = static_cast<uint64_t>(i);
    if (is_floating(type.dtype))
      tensor[i] = name.ends_with("running_var") ? 0.5 + static_cast<double>(random.uniform(at))
                                                : static_cast<double>(random.normal(at)) * 0.3;
    else
      tensor[i] = std::floor(static_cast<double>(random.uniform(at)) * static_cast<double>(bound));
  }
  return tensor;
}

int64_t bound_of(const std::string& name, const std::vector<std::pair<std::string, int64_t>>& bounds) {
  for (const auto& [input, bound] : bounds)
    if (input == name) return bound;
  return 2;
}

struct Exported {
  ParsedOnnx parsed;
  OnnxModel model;
};

ReadWeight drawn_weights(const Graph& graph) {
  return [&graph](const OnnxWeight& weight, int64_t first, std::span<std::byte> into) {
    const Type& type = graph.type(graph.find(weight.name));
    const RefTensor values = drawn(weight.name, type, 2);
    for (size_t i = 0; i < into.size() / sizeof(float); ++i) {
      const auto value = static_cast<float>(values[first / 4 + static_cast<int64_t>(i)]);
      std::memcpy(&into[i * sizeof value], &value, sizeof value);
    }
  };
}

// Writes and reads the model of a graph that is built for a number of samples.
using BuildGraph = std::function<Graph(int64_t batch)>;

Exported exported(const BuildGraph& build) {
  const Graph two = onnx_ops_only(build(2)), three = onnx_ops_only(build(3));
  Exported result;
  result.model = OnnxLowering(two, open_extents(two, 2, three, 3)).run();
  const TestFolder folder;
  write_onnx(result.model, {.path = folder.path("m.onnx")}, drawn_weights(two));
  result.parsed = parse_onnx(read_file(folder.path("m.onnx")));
  return result;
}

using Bounds = std::vector<std::pair<std::string, int64_t>>;

void expect_same_answers(const BuildGraph& build, const Bounds& bounds = {}) {
  const Exported model = exported(build);
  for (const int64_t batch : {1, 2, 5}) {
    const Graph graph = build(batch);
    RefTensors ours, theirs;
    for (const GraphInput& input : graph.inputs()) {
      const std::string& name = graph.name(input.value);
      RefTensor values = drawn(name, graph.type(input.value), bound_of(name, bounds));
      for (double& x : values.data)
        if (is_floating(values.type.dtype)) x = static_cast<double>(static_cast<float>(x));
      ours[name] = values;
      if (input.role != Role::kInput) continue;
      if (!is_floating(values.type.dtype)) values.type.dtype = DType::kI32;
      theirs[name] = values;
    }
    const std::vector<RefTensor> expected = interpret(graph, ours);
    const std::vector<RefTensor> found = OnnxRunner(model.parsed, theirs).run();
    ASSERT_EQ(found.size(), expected.size());
    for (size_t output = 0; output < expected.size(); ++output) {
      ASSERT_EQ(found[output].shape(), expected[output].shape()) << "batch " << batch;
      for (int64_t i = 0; i < expected[output].numel(); ++i)
        ASSERT_NEAR(found[output][i], expected[output][i], 1e-6 * (1 + std::fabs(expected[output][i])))
            << model.parsed.outputs[output].name << " " << i << " of batch " << batch;
    }
  }
}

const ModelFamily& family(std::string_view name) {
  for (const ModelFamily* each : model_families())
    if (each->name == name) return *each;
  throw UserError("no family {}", name);
}

Model tiny(std::string_view name, int64_t batch) {
  const ModelFamily& of = family(name);
  ModelSizes sizes = of.defaults;
  InputSizes inputs;
  if (name == "gpt") sizes = {.layers = 2, .dim = 12, .heads = 3, .vocab = 19, .seq = 7};
  if (name == "encoder") {
    sizes = {.layers = 2, .dim = 12, .heads = 3, .vocab = 19, .seq = 7, .classes = 5};
    inputs.padded = true;
  }
  if (name == "tabular") {
    sizes = {.dim = 4, .rows = 11, .bottom = {6}, .top = {5}};
    sizes.tables = 3;
    sizes.dense = 5;
  }
  if (name == "resnet") sizes = {.classes = 5, .depth = 18, .width = 2, .image = 32};
  return of.build(sizes, inputs, batch, false);
}

BuildGraph forward_of(std::string_view name) {
  return [name](int64_t batch) { return forward_graph(tiny(name, batch)); };
}

TEST(OnnxFamily, Tabular) { expect_same_answers(forward_of("tabular"), {{"ids", 11}}); }
TEST(OnnxFamily, Gpt) { expect_same_answers(forward_of("gpt"), {{"input_ids", 19}}); }
TEST(OnnxFamily, Resnet) { expect_same_answers(forward_of("resnet")); }
// Drawn masks hide whole rows too.
TEST(OnnxFamily, Encoder) {
  expect_same_answers(forward_of("encoder"), {{"input_ids", 19}, {"token_type_ids", 2}});
}

std::string ports(const std::vector<testing::ParsedPort>& all) {
  std::string text;
  for (const auto& port : all)
    text +=
        fmt::format("{}{}:{}[{}]", text.empty() ? "" : " ", port.name, port.type, fmt::join(port.dims, ","));
  return text;
}

// Element types: 1 is float, 7 is int64.
TEST(OnnxFamily, HasTheNamesThatCallersExpect) {
  const auto tabular = exported(forward_of("tabular")).parsed;
  EXPECT_EQ(ports(tabular.inputs), "dense:1[batch,5] ids:7[batch,3]");
  EXPECT_EQ(ports(tabular.outputs), "logits:1[batch] probability:1[batch]");
  const auto encoder = exported(forward_of("encoder")).parsed;
  EXPECT_EQ(ports(encoder.inputs),
            "attention_mask:7[batch,7] input_ids:7[batch,7] token_type_ids:7[batch,7]");
  EXPECT_EQ(ports(encoder.outputs), "logits:1[batch,5] probabilities:1[batch,5] classes:7[batch]");
  const auto gpt = exported(forward_of("gpt")).parsed;
  EXPECT_EQ(ports(gpt.inputs), "input_ids:7[batch,7]");
  EXPECT_EQ(ports(gpt.outputs), "logits:1[batch,7,19]");
  const auto resnet = exported(forward_of("resnet")).parsed;
  EXPECT_EQ(ports(resnet.inputs), "images:1[batch,32,32,3]");
  EXPECT_EQ(ports(resnet.outputs), "logits:1[batch,5] probabilities:1[batch,5] classes:7[batch]");
  EXPECT_EQ(gpt.ir_version, 8);
  EXPECT_EQ(gpt.opset, 17);
  EXPECT_EQ(gpt.producer, "lockstep");
}

// A user reads the graph: no copies of images from one order to the other, no explicit broadcasts, whole ops.
TEST(OnnxFamily, IsWrittenAsOneWouldByHand) {
  const auto resnet = exported(forward_of("resnet")).parsed;
  EXPECT_EQ(resnet.count("Transpose"), 1);
  EXPECT_EQ(resnet.count("Conv"), 20);
  EXPECT_EQ(resnet.count("BatchNormalization"), 20);
  EXPECT_EQ(resnet.count("Expand"), 0);
  EXPECT_EQ(resnet.tensors.at("conv1.weight").dims, (std::vector<int64_t>{2, 3, 7, 7}));
  const auto gpt = exported(forward_of("gpt")).parsed;
  EXPECT_EQ(gpt.count("Softmax"), 2);
  EXPECT_EQ(gpt.count("LayerNormalization"), 5);
  EXPECT_EQ(gpt.count("Expand"), 0);
  EXPECT_TRUE(gpt.tensors.contains("wte.weight"));
}

Type f32(Shape shape) { return {DType::kF32, shape}; }

TEST(OnnxOps, ImagesThatAreMixedWithOtherValues) {
  expect_same_answers([](int64_t batch) {
    Graph graph(all_ops(), "images");
    Builder b(graph);
    const Value x = b.input("x", f32({batch, 6, 7, 4}));
    const Value filter = b.param("filter", {6, 3, 2, 2});
    const Value bias = b.param("bias", {6});
    Value y = b.op("conv2d", {x, filter},
                   {{"stride", std::vector<int64_t>{2, 1}},
                    {"padding", std::vector<int64_t>{1, 2, 0, 1}},
                    {"dilation", std::vector<int64_t>{1, 2}},
                    {"groups", int64_t{2}}});
    y = b.add(b.scale(y, 0.5), bias);
    y = b.op("avg_pool2d", {y},
             {{"kernel", std::vector<int64_t>{2, 2}},
              {"padding", std::vector<int64_t>{1, 0, 0, 1}},
              {"count_include_pad", false}});
    graph.add_output(b.sum(y, {1, 2}, true));
    graph.add_output(b.max(y, {3}));
    return graph;
  });
}

TEST(OnnxOps, ConstantsAlongTheBatchAreExpanded) {
  const BuildGraph build = [](int64_t batch) {
    Graph graph(all_ops(), "constants");
    Builder b(graph);
    const Value x = b.input("x", f32({batch, 3}));
    const Value row = b.param("row", {1, 2});
    const Value ones = b.constant(2, f32({batch, 2}));
    graph.add_output(b.concat({x, ones, b.broadcast(row, {batch, 2})}, 1));
    graph.add_output(
        b.op("pad", {x},
             {{"low", std::vector<int64_t>{0, 1}}, {"high", std::vector<int64_t>{0, 2}}, {"value", 1.5}}));
    const Value index =
        b.op("iota", {},
             {{"shape", std::vector<int64_t>{batch, 3}}, {"axis", int64_t{1}}, {"dtype", DType::kF32}});
    graph.add_output(b.add(index, x));
    return graph;
  };
  expect_same_answers(build);
  EXPECT_EQ(exported(build).parsed.count("Shape"), 1);
}

TEST(OnnxOps, Pointwise) {
  expect_same_answers([](int64_t batch) {
    Graph graph(all_ops(), "pointwise");
    Builder b(graph);
    const Value x = b.input("x", f32({batch, 3, 4}));
    const Value y = b.input("y", f32({batch, 3, 4}));
    Value sum = b.constant_like(0, x);
    const auto take = [&](Value value) { sum = b.add(sum, b.cast(value, DType::kF32)); };
    for (const char* order : {"eq", "ne", "lt", "le", "gt", "ge"}) take(b.compare(order, x, y));
    for (const char* op : {"neg", "exp", "tanh", "erf", "sigmoid", "relu", "abs", "sign", "gelu", "silu"})
      take(b.op(op, {x}));
    const Value square = b.shift(b.mul(x, x), 0.5);
    for (const char* op : {"log", "sqrt", "rsqrt"}) take(b.op(op, {square}));
    for (const char* op : {"minimum", "maximum", "div", "sub"}) take(b.op(op, {x, square}));
    take(b.op("pow", {square, y}));
    take(b.op("clamp", {x}, {{"low", -0.1}, {"high", 0.2}}));
    take(b.op("clamp", {x}, {{"high", 0.1}}));
    take(b.op("logical_not", {b.compare("lt", x, y)}));
    take(b.where(b.compare("lt", x, y), x, square));
    graph.add_output(sum);
    graph.add_output(b.op("log_softmax", {x}, {{"axis", int64_t{1}}}));
    return graph;
  });
}

TEST(OnnxOps, AttentionWithGroupsWindowsAndDocuments) {
  for (const char* mask : {"none", "keys", "documents", "keys+documents"})
    expect_same_answers(
        [mask = std::string(mask)](int64_t batch) {
          Graph graph(all_ops(), "attention");
          Builder b(graph);
          const Value x = b.input("x", f32({batch, 5, 4, 6}));
          const Value positions = b.input("positions", {DType::kI32, {batch, 5}});
          std::vector<Value> operands = {
              b.op("rope", {x}, {{"rotary_dim", int64_t{4}}, {"factor", 1.25}}),
              b.op("rope", {b.slice(x, 2, 0, 2), positions}, {{"max_position", int64_t{9}}}),
              b.slice(x, 2, 2, 4)};
          if (mask.starts_with("keys")) operands.push_back(b.input("visible", {DType::kU8, {batch, 5}}));
          if (mask.ends_with("documents"))
            operands.push_back(b.input("documents", {DType::kI32, {batch, 5}}));
          graph.add_output(
              graph.emit_all("attention", operands,
                             {{"causal", true}, {"window", int64_t{3}}, {"scale", 0.7}, {"mask", mask}})[0]);
          graph.add_output(
              graph.emit_all("attention", operands, {{"scale", 2.0}, {"cap", 1.5}, {"mask", mask}})[0]);
          graph.add_output(b.op("rope", {x}, {{"heads", int64_t{3}}, {"max_position", int64_t{8}}}));
          return graph;
        },
        {{"positions", 9}});
}

TEST(OnnxOps, RowsAndStatistics) {
  expect_same_answers([](int64_t batch) {
    Graph graph(all_ops(), "rows");
    Builder b(graph);
    const Value x = b.input("x", f32({batch, 3, 4}));
    const Value weight = b.param("weight", {4}), bias = b.param("bias", {4});
    const auto norm = b.op_all("layer_norm", {x, weight, bias});
    graph.add_output(b.add(norm[0], b.reshape(norm[2], {batch, 3, 1})));
    graph.add_output(b.op("rms_norm", {x, weight}));
    graph.add_output(b.matmul(x, x, true, false));
    graph.add_output(b.op("lower_triangle", {b.matmul(x, x, false, true)}));
    return graph;
  });
}

TEST(OnnxOps, WhatHasNoFormIsRefusedByName) {
  const auto graph = [](int64_t batch) {
    Graph graph(all_ops(), "drops");
    Builder b(graph);
    const Value rng = b.input("rng", {DType::kI64, {2}});
    graph.add_output(
        b.op("dropout", {b.input("x", f32({batch, 3})), rng}, {{"p", 0.1}, {"key", int64_t{0}}}));
    return graph;
  };
  try {
    exported(graph);
    FAIL() << "a dropout was exported";
  } catch (const UserError& error) {
    EXPECT_TRUE(
        std::string(error.what()).starts_with("cannot export dropout(x: f32[2,3], rng: i64[2]) to ONNX: "))
        << error.what();
  }
}

TEST(OnnxFile, WeightsInAFileOfTheirOwn) {
  const Graph two = onnx_ops_only(forward_of("resnet")(2)), three = onnx_ops_only(forward_of("resnet")(3));
  const OnnxModel model = OnnxLowering(two, open_extents(two, 2, three, 3)).run();
  const TestFolder folder;
  const ReadWeight read = drawn_weights(two);
  write_onnx(model, {.path = folder.path("inline.onnx")}, read);
  write_onnx(model, {folder.path("m.onnx"), folder.path("w.part"), "m.onnx.data"}, read);
  const ParsedOnnx apart = parse_onnx(read_file(folder.path("m.onnx")));
  const ParsedOnnx inside = parse_onnx(read_file(folder.path("inline.onnx")));
  const std::string data = read_file(folder.path("w.part"));
  EXPECT_EQ(apart.nodes.size(), inside.nodes.size());
  ASSERT_EQ(apart.tensors.size(), inside.tensors.size());
  for (const auto& [name, tensor] : apart.tensors) {
    const testing::ParsedTensor& expected = inside.tensors.at(name);
    EXPECT_EQ(tensor.dims, expected.dims) << name;
    if (name.starts_with("constant/")) continue;
    ASSERT_EQ(tensor.external.at("location"), "m.onnx.data") << name;
    const auto offset = std::stoul(tensor.external.at("offset"));
    EXPECT_EQ(offset % 4096, 0u) << name;
    EXPECT_TRUE(data.substr(offset, std::stoul(tensor.external.at("length"))) == expected.bytes) << name;
  }
}

}  // namespace
}  // namespace lockstep
