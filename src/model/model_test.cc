// A model built to evaluate is the trained one: the same parameters, with an answer and without dropout.
#include <gtest/gtest.h>

#include <algorithm>

#include "graph/op_def.h"
#include "model/encoder.h"
#include "model/family.h"
#include "model/gpt.h"
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
    sizes.heads = 7;
    const auto problem = family->check(sizes);
    ASSERT_TRUE(problem.has_value()) << family->name;
    EXPECT_EQ(problem->key, "heads");
    EXPECT_EQ(problem->problem, "does not divide model.dim 768; use 6 or 8");
  }
}

}  // namespace
}  // namespace lockstep
