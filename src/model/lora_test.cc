#include "model/lora.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "graph/interpreter.h"
#include "graph/op_def.h"
#include "graph/text.h"
#include "graph/verifier.h"
#include "model/frozen_params.h"
#include "model/gpt.h"
#include "model/layers.h"
#include "model/llama.h"
#include "ops/registry.h"

namespace lockstep {
namespace {

// Two layers, one stored [in, out] with a bias, one [out, in] without.
Model small_model() {
  Model model{Graph(all_ops(), "small"), {}, 3, 0, {}, Task::kClassify};
  Layers b(model);
  const Value x = b.input("x", {DType::kF32, {3, 4}});
  const Value up = b.linear_in_out("up", x, 5, 0.1);
  model.graph.add_output(b.sum(b.linear_without_bias("down", up, 2, 0.1), {0, 1}));
  return model;
}

LoraSettings settings(std::vector<std::string> modules) {
  return {.rank = 2, .alpha = 6, .modules = std::move(modules)};
}

TEST(Lora, MatricesStandBesideTheirLayer) {
  const Model model = with_lora(small_model(), settings({"up"}), true);
  verify(model.graph, Stage::kImported);
  EXPECT_EQ(
      to_text(model.graph),
      "graph small(x: f32[3,4], up.weight: f32[4,5] @param, up.bias: f32[5] @param, down.weight: f32[2,5] "
      "@param, base_model.model.up.lora_A.weight: f32[2,4] @param, base_model.model.up.lora_B.weight: "
      "f32[5,2] "
      "@param) {\n"
      "  matmul = matmul(x, up.weight)\n"
      "  broadcast = broadcast(up.bias) {shape=[3,5]}\n"
      "  add = add(matmul, broadcast)\n"
      "  matmul_1 = matmul(x, base_model.model.up.lora_A.weight) {transpose_b=true}\n"
      "  constant = constant() {value=3.0}\n"
      "  broadcast_1 = broadcast(constant) {shape=[3,2]}\n"
      "  mul = mul(matmul_1, broadcast_1)\n"
      "  matmul_2 = matmul(mul, base_model.model.up.lora_B.weight) {transpose_b=true}\n"
      "  add_1 = add(add, matmul_2)\n"
      "  matmul_1_1 = matmul(add_1, down.weight) {transpose_b=true}\n"
      "  sum = sum(matmul_1_1) {axes=[0,1]}\n"
      "  return sum\n"
      "}\n");
}

RefTensor numbers(const Graph& graph, std::string_view name, double step) {
  RefTensor tensor(graph.type(graph.find(name)));
  for (int64_t i = 0; i < tensor.numel(); ++i) tensor[i] = step * static_cast<double>((i * 7 + 3) % 11 - 5);
  return tensor;
}

// y = x (W + scale (B A)^T) + bias, for both orders of axes.
TEST(Lora, IsASumOfWeights) {
  const Model base = small_model();
  const Model model = with_lora(base, settings({std::string(kAllLinear)}), false);
  RefTensors inputs, merged;
  for (const GraphInput& input : model.graph.inputs()) {
    const std::string& name = model.graph.name(input.value);
    inputs[name] = numbers(model.graph, name, 0.01 * static_cast<double>(name.size()));
  }
  for (const GraphInput& input : base.graph.inputs()) {
    const std::string& name = base.graph.name(input.value);
    merged[name] = inputs[name];
  }
  for (const LinearLayer& layer : linear_layers(base)) {
    const RefTensor &a = inputs[lora_a_name(layer.module)], &b = inputs[lora_b_name(layer.module)];
    RefTensor& weight = merged[layer.module + ".weight"];
    for (int64_t i = 0; i < layer.in; ++i)
      for (int64_t o = 0; o < layer.out; ++o)
        for (int64_t r = 0; r < 2; ++r)
          weight[layer.in_out ? i * layer.out + o : o * layer.in + i] +=
              3.0 * b[o * 2 + r] * a[r * layer.in + i];
  }
  const double expected = interpret(base.graph, merged)[0].scalar();
  EXPECT_NEAR(interpret(model.graph, inputs)[0].scalar(), expected, 1e-9);
  EXPECT_GT(std::abs(interpret(base.graph, inputs)[0].scalar() - expected), 1e-3);
}

TEST(Lora, BeginsAsPeftHasIt) {
  const Model model = with_lora(small_model(), settings({"up"}), true);
  const ParamInit& a = model.params[3];
  EXPECT_EQ(a.kind, ParamInit::Kind::kUniform);
  EXPECT_EQ(a.b, 0.5);
  EXPECT_EQ(a.a, -0.5);
  const ParamInit& b = model.params[4];
  EXPECT_EQ(b.kind, ParamInit::Kind::kConstant);
  EXPECT_EQ(b.a, 0);
  EXPECT_EQ((LoraSettings{.rank = 4, .alpha = 8, .modules = {}}.scale()), 2);
  EXPECT_EQ((LoraSettings{.rank = 4, .alpha = 8, .rank_stabilised = true, .modules = {}}.scale()), 4);
}

TEST(Lora, DropsInputsToTrainAndNotToEvaluate) {
  LoraSettings dropping = settings({"up"});
  dropping.dropout = 0.25;
  EXPECT_NE(to_text(with_lora(small_model(), dropping, true).graph).find("dropout(x, rng) {p=0.25, key=0}"),
            std::string::npos);
  EXPECT_EQ(to_text(with_lora(small_model(), dropping, false).graph).find("dropout"), std::string::npos);
  // Beside the model's own.
  const Model gpt =
      build_gpt({.layers = 1, .dim = 8, .heads = 2, .vocab = 16, .batch = 1, .seq = 4, .dropout = 0.1});
  dropping.modules = {"c_attn"};
  const std::string text = to_text(with_lora(gpt, dropping, true).graph);
  EXPECT_NE(text.find("{p=0.25, key=3}"), std::string::npos) << text;
}

TEST(Lora, AllLinearIsEveryLayerButTheHead) {
  const Model llama = build_llama(
      {.layers = 2, .dim = 8, .heads = 2, .kv_heads = 2, .hidden = 8, .vocab = 16, .batch = 1, .seq = 4});
  EXPECT_EQ(linear_layers(llama).size(), 15U);
  EXPECT_EQ(adapted_layers(llama, {std::string(kAllLinear)}).size(), 14U);
  EXPECT_EQ(adapted_layers(llama, {"q_proj", "model.layers.1.mlp.up_proj"}).size(), 3U);
  EXPECT_EQ(adapted_layers(llama, {"lm_head"}).size(), 1U);
  EXPECT_THROW(adapted_layers(llama, {"q_pro"}), UserError);
  EXPECT_THROW(adapted_layers(llama, {"proj"}), UserError);
  // The tied head multiplies by a table that is looked up.
  const Model gpt = build_gpt({.layers = 1, .dim = 8, .heads = 2, .vocab = 16, .batch = 1, .seq = 4});
  EXPECT_EQ(linear_layers(gpt).size(), 4U);
  EXPECT_TRUE(linear_layers(gpt)[0].in_out);
  EXPECT_EQ(linear_layers(gpt)[0].out, 24);
}

TEST(FrozenParams, KeepTheirTypeAndAreCastWhereTheyWereRead) {
  const Model model = with_frozen(small_model(), [](const std::string& name) -> std::optional<DType> {
    return name.starts_with("up.") ? std::optional(DType::kBF16) : std::nullopt;
  });
  verify(model.graph, Stage::kImported);
  const std::string text = to_text(model.graph);
  EXPECT_NE(text.find("up.weight: bf16[4,5] @frozen"), std::string::npos) << text;
  EXPECT_NE(text.find("cast(up.weight) {dtype=f32}"), std::string::npos) << text;
  ASSERT_EQ(model.params.size(), 3U);
  EXPECT_EQ(model.params[0].name, "down.weight");
  EXPECT_FALSE(model.params[0].frozen);
  EXPECT_TRUE(model.params[1].frozen);
  EXPECT_EQ(model.params[1].dtype, DType::kBF16);
}

}  // namespace
}  // namespace lockstep
