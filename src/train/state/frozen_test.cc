// Parameters that are not trained keep their bytes and their type, and have no gradient and no state.
#include <gtest/gtest.h>

#include "ops/builder.h"
#include "ops/registry.h"
#include "train/step/synthetic.h"
#include "train/step/train_step.h"

namespace lockstep {
namespace {

// x -> frozen projection in bf16 -> trained layer -> classes.
Model projection_model() {
  Model model{Graph(all_ops(), "projection"), {}, 4, 0, {{"labels", 3}}};
  Builder b(model.graph);
  const Value x = b.input("x", {DType::kF32, {4, 8}});
  const Value labels = b.input("labels", {DType::kI32, {4}});
  const Value frozen = b.param("frozen.weight", {8, 16}, DType::kBF16, true);
  const Value weight = b.param("weight", {16, 3});
  const Value h = b.tanh(b.matmul(x, b.cast(frozen, DType::kF32)));
  const auto loss = b.op_all("cross_entropy", {b.matmul(h, weight), labels});
  model.graph.add_output(loss[0]);
  model.graph.add_output(loss[1]);
  model.params = {{.name = "frozen.weight",
                   .kind = ParamInit::Kind::kNormal,
                   .b = 0.5,
                   .dtype = DType::kBF16,
                   .frozen = true},
                  {.name = "weight", .kind = ParamInit::Kind::kNormal, .b = 0.1, .decay = true}};
  return model;
}

TEST(Frozen, KeepsItsValuesWhileTheRestTrains) {
  const Model model = projection_model();
  const auto backend = make_cpu_backend(1);
  TrainStep train(model, *backend, {});
  const std::vector<float> frozen = train.param("frozen.weight");
  const std::vector<float> weight = train.param("weight");
  const std::string before = train.weights_sha256();
  for (int64_t step = 1; step <= 3; ++step) {
    set_synthetic_inputs(train, model, 3, step);
    train.run(1e-2);
  }
  EXPECT_EQ(train.param("frozen.weight"), frozen);
  EXPECT_NE(train.param("weight"), weight);
  EXPECT_NE(train.weights_sha256(), before);
}

TEST(Frozen, HasNoGradientAndNoState) {
  const Model model = projection_model();
  const auto backend = make_cpu_backend(1);
  TrainStep train(model, *backend, {});
  ASSERT_EQ(train.state().frozen().size(), 1U);
  EXPECT_EQ(train.state().frozen()[0].bytes(), 8 * 16 * 2);
  ASSERT_EQ(train.params().size(), 1U);
  EXPECT_EQ(train.params()[0].name, "weight");
  for (const StateTensor& tensor : train.state().optimizer())
    EXPECT_EQ(tensor.name.find("frozen"), std::string::npos) << tensor.name;
}

TEST(Frozen, IsPartOfTheModel) {
  const Model model = projection_model();
  const auto backend = make_cpu_backend(1);
  TrainStep train(model, *backend, {});
  const std::string before = train.weights_sha256();
  std::vector<float> values = train.param("frozen.weight");
  values[5] += 1;
  train.set_param("frozen.weight", values);
  EXPECT_EQ(train.param("frozen.weight"), values);
  EXPECT_NE(train.weights_sha256(), before);
}

}  // namespace
}  // namespace lockstep
