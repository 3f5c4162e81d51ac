// Layers put together as llama does, dropout, and how parameters are stored.
#include "model/layers.h"

#include <gtest/gtest.h>

#include <map>

#include "graph/interpreter.h"
#include "graph/op_def.h"
#include "graph/verifier.h"
#include "ops/registry.h"

namespace lockstep {
namespace {

constexpr int64_t kBatch = 2, kSeq = 5, kDim = 12, kHeads = 6, kKvHeads = 2, kHidden = 16;

// One block: x + attention(norm(x)), then that + mlp(norm(that)).
Value block(Layers& b, Value x, double base) {
  const AttentionLayer layer{.heads = kHeads, .kv_heads = kKvHeads, .causal = true};
  const int64_t head_dim = kDim / kHeads;
  const Value normed = b.rms_norm("input_layernorm", x, 1e-6);
  const auto project = [&](const char* name, int64_t heads) {
    return b.split_heads(b.linear_without_bias(name, normed, heads * head_dim, 0.3), heads);
  };
  const Value q = b.rope(project("self_attn.q_proj", kHeads), base);
  const Value k = b.rope(project("self_attn.k_proj", kKvHeads), base);
  const Value mixed = b.attention(q, k, project("self_attn.v_proj", kKvHeads), layer);
  x = b.add(x, b.linear_without_bias("self_attn.o_proj", mixed, kDim, 0.3));
  return b.add(x, b.gated_mlp("mlp", b.rms_norm("post_attention_layernorm", x, 1e-6), kHidden, 0.3, 0.1));
}

Model empty_model() { return {Graph(all_ops(), "block"), {}, kBatch, 0, {}, Task::kNextToken}; }

std::map<std::string, std::string> inputs_of(const Graph& graph) {
  std::map<std::string, std::string> types;
  for (const GraphInput& input : graph.inputs())
    types[graph.name(input.value)] =
        to_string(graph.type(input.value)) + " @" + std::string(name_of(input.role));
  return types;
}

RefTensors values_for(const Model& model) {
  RefTensors values;
  for (const GraphInput& input : model.graph.inputs()) {
    RefTensor tensor(model.graph.type(input.value));
    std::vector<float> drawn(static_cast<size_t>(tensor.numel()));
    init_param({model.graph.name(input.value), ParamInit::Kind::kNormal, 0, 1}, 7, 0, drawn);
    for (int64_t i = 0; i < tensor.numel(); ++i) tensor[i] = drawn[static_cast<size_t>(i)];
    values[model.graph.name(input.value)] = std::move(tensor);
  }
  return values;
}

TEST(Layers, ALlamaBlockHasTheParametersOfHuggingFace) {
  Model model = empty_model();
  Layers b(model);
  model.graph.add_output(block(b, b.input("x", {DType::kF32, {kBatch, kSeq, kDim}}), 10000));
  verify(model.graph, Stage::kImported);
  EXPECT_EQ(inputs_of(model.graph),
            (std::map<std::string, std::string>{{"x", "f32[2,5,12] @input"},
                                                {"input_layernorm.weight", "f32[12] @param"},
                                                {"self_attn.q_proj.weight", "f32[12,12] @param"},
                                                {"self_attn.k_proj.weight", "f32[4,12] @param"},
                                                {"self_attn.v_proj.weight", "f32[4,12] @param"},
                                                {"self_attn.o_proj.weight", "f32[12,12] @param"},
                                                {"post_attention_layernorm.weight", "f32[12] @param"},
                                                {"mlp.gate_proj.weight", "f32[16,12] @param"},
                                                {"mlp.up_proj.weight", "f32[16,12] @param"},
                                                {"mlp.down_proj.weight", "f32[12,16] @param"}}));
  EXPECT_EQ(parameter_count(model), 12 + 2 * 144 + 2 * 48 + 12 + 3 * 192);
}

// A position's result depends on those before it and on nothing after it.
TEST(Layers, CausalAttentionDoesNotLookAhead) {
  Model model = empty_model();
  Layers b(model);
  model.graph.add_output(block(b, b.input("x", {DType::kF32, {kBatch, kSeq, kDim}}), 10000));
  RefTensors values = values_for(model);
  const RefTensor before = interpret(model.graph, values)[0];
  constexpr int64_t kChanged = 3;
  values["x"][kChanged * kDim] += 1;
  const RefTensor after = interpret(model.graph, values)[0];
  for (int64_t t = 0; t < kSeq; ++t)
    EXPECT_EQ(before[t * kDim] != after[t * kDim], t >= kChanged) << "position " << t;
}

TEST(Layers, DropoutDrawsAnewInEveryPlaceAndCostsNothingWhereItIsOff) {
  Model model = empty_model();
  Layers b(model);
  const Value x = b.input("x", {DType::kF32, {4}});
  b.use_dropout(0);
  EXPECT_EQ(b.dropout(x), x);
  EXPECT_FALSE(model.graph.find("rng").valid());
  b.use_dropout(0.25);
  b.dropout(b.dropout(x));
  ASSERT_EQ(model.graph.nodes().size(), 2U);
  EXPECT_NE(model.graph.nodes()[0].attributes.integer("key"),
            model.graph.nodes()[1].attributes.integer("key"));
}

TEST(Layers, ParametersAreStoredAsAskedAndReadAsF32) {
  Model model = empty_model();
  Layers b(model);
  const Value x = b.input("x", {DType::kF32, {3, 4}});
  b.store_parameters({.dtype = DType::kBF16, .frozen = true});
  const Value h = b.linear("base", x, 4, 0.1);
  b.store_parameters({});
  const Value y = b.linear_without_bias("adapter", h, 2, 0.1);
  EXPECT_EQ(b.type(y).dtype, DType::kF32);
  EXPECT_EQ(inputs_of(model.graph),
            (std::map<std::string, std::string>{{"x", "f32[3,4] @input"},
                                                {"base.weight", "bf16[4,4] @frozen"},
                                                {"base.bias", "bf16[4] @frozen"},
                                                {"adapter.weight", "f32[2,4] @param"}}));
  ASSERT_EQ(model.params.size(), 3U);
  EXPECT_EQ(model.params[0].dtype, DType::kBF16);
  EXPECT_TRUE(model.params[0].frozen);
  EXPECT_FALSE(model.params[2].frozen);
  EXPECT_EQ(parameter_count(model), 16 + 4 + 8);
}

}  // namespace
}  // namespace lockstep
