// A model built to evaluate is the trained one: the same parameters, with an answer and without dropout.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "graph/interpreter.h"
#include "graph/op_def.h"
#include "model/encoder.h"
#include "model/family.h"
#include "model/gpt.h"
#include "model/llama.h"
#include "model/resnet.h"
#include "model/tabular.h"

namespace lockstep {
namespace {

std::vector<std::string> inputs_of(const Model& model, Role role) {
  std::vector<std::string> lines;
  for (const GraphInput& input : model.graph.inputs())
    if (input.role == role)
      lines.push_back(model.graph.name(input.value) + ": " + to_string(model.graph.type(input.value)));
  return lines;
}

void expect_same_parameters(const Model& training, const Model& evaluation) {
  EXPECT_EQ(inputs_of(training, Role::kParam), inputs_of(evaluation, Role::kParam));
  EXPECT_EQ(training.params.size(), evaluation.params.size());
  EXPECT_EQ(training.task, evaluation.task);
  EXPECT_FALSE(evaluation.graph.find("rng").valid());
  for (const Node& node : evaluation.graph.nodes()) EXPECT_NE(node.op->name, "dropout");
  for (const GraphOutput& output : evaluation.graph.outputs()) EXPECT_FALSE(output.target.valid());
}

std::string answer_of(const Model& model) {
  return to_string(model.graph.type(model.graph.outputs()[2].value));
}

TEST(EvaluationModel, Gpt) {
  const Model model = build_gpt({2, 24, 3, 50, 3, 17, 0.1, false});
  expect_same_parameters(build_gpt({2, 24, 3, 50, 3, 17, 0.1}), model);
  EXPECT_EQ(answer_of(model), "i32[51]");
}

TEST(EvaluationModel, Llama) {
  for (const bool tied : {false, true}) {
    LlamaSizes sizes{.layers = 2,
                     .dim = 24,
                     .heads = 6,
                     .kv_heads = 2,
                     .hidden = 40,
                     .vocab = 50,
                     .batch = 3,
                     .seq = 17,
                     .tied = tied};
    const Model training = build_llama(sizes);
    sizes.training = false;
    const Model model = build_llama(sizes);
    expect_same_parameters(training, model);
    EXPECT_EQ(answer_of(model), "i32[51]");
  }
}

TEST(EvaluationModel, Encoder) {
  const Model model = build_encoder({2, 24, 3, 96, 40, 3, 4, 11, 0.1, true, false});
  expect_same_parameters(build_encoder({2, 24, 3, 96, 40, 3, 4, 11, 0.1, true}), model);
  EXPECT_EQ(answer_of(model), "i32[4]");
}

TEST(EvaluationModel, Tabular) {
  const Model model = build_tabular({3, 11, 8, 5, {16, 12}, {16, 12}, 13, false});
  expect_same_parameters(build_tabular({3, 11, 8, 5, {16, 12}, {16, 12}, 13}), model);
  EXPECT_EQ(answer_of(model), "f32[13]");
}

TEST(EvaluationModel, TabularTasks) {
  TabularSizes sizes{3, 11, 8, 5, {16, 12}, {16, 12}, 13};
  for (const auto& [task, answer] : {std::pair{Task::kClassify, "f32[13,7]"}, {Task::kRegress, "f32[13]"}}) {
    sizes.task = task;
    sizes.classes = 7;
    for (const bool weighted : {false, true}) {
      sizes.training = sizes.weighted = true;
      sizes.weighted = weighted;
      const Model training = build_tabular(sizes);
      EXPECT_EQ(training.graph.find("weights").valid(), weighted);
      sizes.training = sizes.weighted = false;
      const Model model = build_tabular(sizes);
      expect_same_parameters(training, model);
      EXPECT_EQ(answer_of(model), answer);
    }
  }
}

// Numbers alone, categories alone, and one category.
TEST(EvaluationModel, TabularInputsOfOneKind) {
  for (const auto& [tables, dense] : {std::pair<int64_t, int64_t>{0, 5}, {3, 0}, {1, 0}}) {
    TabularSizes sizes{tables, 11, 8, dense, {16, 12}, {16, 12}, 13};
    const Model training = build_tabular(sizes);
    EXPECT_EQ(training.graph.find("dense").valid(), dense > 0);
    EXPECT_EQ(training.graph.find("category.0").valid(), tables > 0);
    sizes.training = false;
    expect_same_parameters(training, build_tabular(sizes));
  }
}

TEST(EvaluationModel, Resnet) {
  for (const int64_t depth : {18, 50}) {
    const Model model = build_resnet({depth, 4, 64, 7, 4, false});
    const Model training = build_resnet({depth, 4, 64, 7, 4});
    expect_same_parameters(training, model);
    EXPECT_EQ(inputs_of(training, Role::kStatistic), inputs_of(model, Role::kState));
    EXPECT_EQ(answer_of(model), "i32[4]");
  }
}

// What `lockstep graph` and `lockstep bench step` offer can be built, to train and to evaluate.
TEST(Families, TheirExamplesAreModels) {
  for (const ModelFamily* family : model_families()) {
    for (const ModelExample& example : family->examples) {
      SCOPED_TRACE(example.name);
      EXPECT_FALSE(family->check(example.sizes).has_value());
      const Model training = family->build(example.sizes, {}, 2, true);
      expect_same_parameters(training, family->build(example.sizes, {}, 2, false));
      EXPECT_EQ(training.samples, 2);
      EXPECT_GT(parameter_count(training), 0);
    }
  }
}

TEST(Families, SizesThatDoNotHoldTogetherAreNamed) {
  for (const ModelFamily* family : model_families()) {
    if (std::ranges::count(family->keys, "heads") == 0) continue;
    ModelSizes sizes = family->defaults;
    sizes.dim = 768;
    sizes.heads = 7;
    const auto problem = family->check(sizes);
    ASSERT_TRUE(problem.has_value()) << family->name;
    EXPECT_EQ(problem->key, "heads");
    EXPECT_EQ(problem->problem, "does not divide model.dim 768; use 6 or 8");
  }
}

const ModelFamily& llama() {
  return **std::ranges::find(model_families(), "llama", [](const ModelFamily* one) { return one->name; });
}

TEST(Llama, HeadsThatCannotShareOrTurnAreNamed) {
  ModelSizes sizes = llama().defaults;
  sizes.heads = 32, sizes.dim = 2048, sizes.kv_heads = 5;
  const auto shared = llama().check(sizes);
  ASSERT_TRUE(shared.has_value());
  EXPECT_EQ(shared->key, "kv_heads");
  EXPECT_EQ(shared->value, 5);
  EXPECT_EQ(shared->problem, "does not divide model.heads 32; use 4 or 8");
  sizes.kv_heads.reset();
  EXPECT_FALSE(llama().check(sizes).has_value());
  sizes.dim = 96;
  const auto odd = llama().check(sizes);
  ASSERT_TRUE(odd.has_value());
  EXPECT_EQ(odd->key, "heads");
  EXPECT_TRUE(odd->problem.starts_with("gives heads of width 3")) << odd->problem;
}

// Names, shapes and count of the published models, in whose terms users know them.
TEST(Llama, HasTheParametersOfThePublishedOne) {
  const ModelExample& example = llama().examples.at(2);
  EXPECT_EQ(example.name, "llama-1b");
  const Model model = llama().build(example.sizes, {}, 1, true);
  EXPECT_EQ(parameter_count(model), 1100048384);
  const std::vector<std::string> found = inputs_of(model, Role::kParam);
  EXPECT_EQ(found.size(), 22U * 9 + 3);
  for (const char* line :
       {"model.embed_tokens.weight: f32[32000,2048]", "model.norm.weight: f32[2048]",
        "model.layers.21.input_layernorm.weight: f32[2048]",
        "model.layers.21.self_attn.q_proj.weight: f32[2048,2048]",
        "model.layers.21.self_attn.k_proj.weight: f32[256,2048]",
        "model.layers.21.self_attn.v_proj.weight: f32[256,2048]",
        "model.layers.21.self_attn.o_proj.weight: f32[2048,2048]",
        "model.layers.21.post_attention_layernorm.weight: f32[2048]",
        "model.layers.21.mlp.gate_proj.weight: f32[5632,2048]",
        "model.layers.21.mlp.up_proj.weight: f32[5632,2048]",
        "model.layers.21.mlp.down_proj.weight: f32[2048,5632]", "lm_head.weight: f32[32000,2048]"})
    EXPECT_EQ(std::ranges::count(found, line), 1) << line;
  ModelSizes tied = example.sizes;
  tied.tied = true;
  EXPECT_EQ(parameter_count(llama().build(tied, {}, 1, true)), 1100048384 - 32000 * 2048);
  EXPECT_EQ(llama_hidden(4096), 11008);
}

// Documents that share a row see neither each other nor each other's positions: the loss of the row is the
// sum of their losses alone.
TEST(Llama, DocumentsOfARowAreApart) {
  LlamaSizes sizes{.layers = 1, .dim = 8, .heads = 2, .kv_heads = 1, .hidden = 12, .vocab = 11, .batch = 1};
  const auto loss_of = [&](std::vector<double> tokens, std::vector<double> documents,
                           std::vector<double> positions) {
    sizes.seq = static_cast<int64_t>(tokens.size());
    sizes.documents = !documents.empty();
    const Model model = build_llama(sizes);
    RefTensors values;
    size_t next = 0;
    for (const GraphInput& input : model.graph.inputs()) {
      const std::string& name = model.graph.name(input.value);
      RefTensor tensor(model.graph.type(input.value));
      if (name == "tokens" || name == "targets") tensor.data = tokens;
      if (name == "documents") tensor.data = documents;
      if (name == "positions") tensor.data = positions;
      if (input.role == Role::kParam) {
        std::vector<float> drawn(static_cast<size_t>(tensor.numel()));
        ParamInit init = model.params[next++];
        init.b *= 20;  // so that attention prefers some keys to others
        init_param(init, 3, 0, drawn);
        tensor.data.assign(drawn.begin(), drawn.end());
      }
      values[name] = std::move(tensor);
    }
    return interpret(model.graph, values)[0][0];
  };
  const double apart = loss_of({3, 1, 4}, {}, {}) + loss_of({1, 5, 9, 2}, {}, {});
  EXPECT_NEAR(loss_of({3, 1, 4, 1, 5, 9, 2}, {0, 0, 0, 1, 1, 1, 1}, {0, 1, 2, 0, 1, 2, 3}), apart, 1e-9);
  EXPECT_GT(std::fabs(loss_of({3, 1, 4, 1, 5, 9, 2}, {}, {}) - apart), 1e-3);
}

}  // namespace
}  // namespace lockstep
