#include "model/stored_params.h"

#include <gtest/gtest.h>

#include "graph/interpreter.h"
#include "graph/op_def.h"
#include "graph/text.h"
#include "graph/verifier.h"
#include "model/layers.h"
#include "model/resnet.h"
#include "ops/registry.h"

namespace lockstep {
namespace {

// x -> frozen projection -> trained one -> its sum.
Model small_model() {
  Model model{Graph(all_ops(), "small"), {}, 3, 0, {}, Task::kClassify};
  Layers b(model);
  const Value x = b.input("x", {DType::kF32, {3, 4}});
  const Value trained = b.linear("trained", x, 4, 0.1);
  b.store_parameters({.dtype = DType::kF32, .frozen = true});
  model.graph.add_output(b.sum(b.linear_without_bias("frozen", trained, 2, 0.1), {0, 1}));
  return model;
}

TEST(StoredParams, AreCastWhereTheyWereRead) {
  const Model model = stored_in(DType::kBF16, small_model());
  verify(model.graph, Stage::kImported);
  EXPECT_EQ(to_text(model.graph),
            "graph small(x: f32[3,4], frozen.weight: f32[2,4] @frozen, trained.weight: bf16[4,4] @param, "
            "trained.bias: bf16[4] @param) {\n"
            "  cast = cast(trained.weight) {dtype=f32}\n"
            "  cast_1 = cast(trained.bias) {dtype=f32}\n"
            "  matmul = matmul(x, cast) {transpose_b=true}\n"
            "  broadcast = broadcast(cast_1) {shape=[3,4]}\n"
            "  add = add(matmul, broadcast)\n"
            "  matmul_1 = matmul(add, frozen.weight) {transpose_b=true}\n"
            "  sum = sum(matmul_1) {axes=[0,1]}\n"
            "  return sum\n"
            "}\n");
}

TEST(StoredParams, BeginAsTheOthersDo) {
  const Model model = stored_in(DType::kBF16, small_model());
  ASSERT_EQ(model.params.size(), 3U);
  EXPECT_EQ(model.params[0].name, "frozen.weight");
  EXPECT_EQ(model.params[0].dtype, DType::kF32);
  EXPECT_TRUE(model.params[0].frozen);
  EXPECT_EQ(model.params[1].name, "trained.weight");
  EXPECT_EQ(model.params[1].dtype, DType::kBF16);
  EXPECT_EQ(model.params[1].b, 0.1);
  EXPECT_TRUE(model.params[1].decay);
  EXPECT_EQ(model.params[2].name, "trained.bias");
}

TEST(StoredParams, LeaveTheRestOfTheModelAsItIs) {
  const Model before = build_resnet({18, 4, 32, 5, 2});
  const Model after = stored_in(DType::kBF16, before);
  EXPECT_EQ(parameter_count(after), parameter_count(before));
  EXPECT_EQ(after.samples, before.samples);
  EXPECT_EQ(after.task, before.task);
  EXPECT_EQ(after.statistics.size(), before.statistics.size());
  EXPECT_EQ(after.integer_inputs, before.integer_inputs);
  EXPECT_EQ(after.graph.outputs().size(), before.graph.outputs().size());
}

}  // namespace
}  // namespace lockstep
