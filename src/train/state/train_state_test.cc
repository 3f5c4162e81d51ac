// State taken out of one run and put into another makes it go on with the same bits.
#include "train/state/train_state.h"

#include <gtest/gtest.h>

#include "model/gpt.h"
#include "model/resnet.h"
#include "model/tabular.h"
#include "train/state/state_hash.h"
#include "train/step/synthetic.h"
#include "train/step/train_step.h"

namespace lockstep {
namespace {

void copy_tensors(Backend& backend, const std::vector<StateTensor>& to,
                  const std::vector<StateTensor>& from) {
  ASSERT_EQ(to.size(), from.size());
  for (size_t i = 0; i < to.size(); ++i) {
    ASSERT_EQ(to[i].name, from[i].name);
    ASSERT_EQ(to[i].shape, from[i].shape) << to[i].name;
    backend.copy(to[i].data, from[i].data, from[i].bytes());
  }
}

void expect_goes_on_alike(const Model& model, const TrainOptions& options) {
  const auto backend = make_cpu_backend(2);
  const auto run = [&](TrainStep& train, int64_t first, int64_t last) {
    for (int64_t step = first; step <= last; ++step) {
      set_synthetic_inputs(train, model, 5, step);
      train.run(1e-2 / static_cast<double>(step));
    }
  };
  TrainStep whole(model, *backend, options);
  run(whole, 1, 3);
  TrainOptions other_seed = options;
  other_seed.seed = options.seed + 1;
  TrainStep second(model, *backend, other_seed);
  copy_tensors(*backend, second.state().model(), whole.state().model());
  copy_tensors(*backend, second.state().optimizer(), whole.state().optimizer());
  copy_tensors(*backend, second.state().averages(), whole.state().averages());
  second.restored(3);
  run(whole, 4, 6);
  run(second, 4, 6);
  EXPECT_EQ(second.weights_sha256(), whole.weights_sha256());
  EXPECT_EQ(sha256_of(*backend, second.state().averages()), sha256_of(*backend, whole.state().averages()));
}

TEST(TrainState, GoesOnAlikeWithEveryOptimizer) {
  const Model model = build_gpt({1, 24, 2, 31, 2, 9, 0.0});
  for (const char* name : {"sgd", "adam", "adamw", "lamb", "lion", "adafactor"}) {
    SCOPED_TRACE(name);
    TrainOptions options;
    options.optimizer.name = name;
    expect_goes_on_alike(model, options);
  }
}

TEST(TrainState, GoesOnAlikeWithTablesThatAreUpdatedLate) {
  expect_goes_on_alike(build_tabular({2, 400, 8, 3, {9}, {7}, 6}), {});
}

TEST(TrainState, GoesOnAlikeWithStatistics) { expect_goes_on_alike(build_resnet({18, 4, 32, 5, 2}), {}); }

TEST(TrainState, GoesOnAlikeWithAverages) {
  TrainOptions options;
  options.ema = 0.9;
  expect_goes_on_alike(build_gpt({1, 24, 2, 31, 2, 9, 0.0}), options);
  expect_goes_on_alike(build_tabular({2, 400, 8, 3, {9}, {7}, 6}), options);
}

TEST(TrainState, NamesTheOptimizersTensorsByParameter) {
  const auto backend = make_cpu_backend(1);
  TrainOptions options;
  options.optimizer.name = "adafactor";
  TrainStep train(build_gpt({1, 24, 2, 31, 2, 9, 0.0}), *backend, options);
  std::map<std::string, Shape> shapes;
  for (const StateTensor& tensor : train.state().optimizer()) shapes[tensor.name] = tensor.shape;
  EXPECT_EQ(shapes.at("row_means.wte.weight"), Shape({31}));
  EXPECT_EQ(shapes.at("column_means.wte.weight"), Shape({24}));
  EXPECT_EQ(shapes.at("whole.ln_f.bias"), Shape({24}));
}

}  // namespace
}  // namespace lockstep
