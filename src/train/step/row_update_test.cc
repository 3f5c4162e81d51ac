// Late updates of table rows give the bits of dense updates.
#include <gtest/gtest.h>

#include "model/tabular.h"
#include "train/step/synthetic.h"
#include "train/step/train_step.h"

namespace lockstep {
namespace {

TEST(RowUpdate, EqualsTheDenseUpdateBitForBit) {
  const Model model = build_tabular({3, 500, 16, 5, {33}, {20}, 24});
  const auto backend = make_cpu_backend(2);
  TrainOptions options;
  options.seed = 3;
  options.optimizer.clip_norm = 0;  // the norm sums rows in another order than a dense gradient
  options.optimizer.weight_decay = 0.1;
  TrainStep rows(model, *backend, options);
  options.passes.disabled = {"row_gradients"};
  TrainStep dense(model, *backend, options);
  EXPECT_TRUE(rows.backward().graph().find("grad.table.0.weight.rows").valid());
  EXPECT_TRUE(dense.backward().graph().find("grad.table.0.weight").valid());
  for (int64_t step = 1; step <= 12; ++step) {
    const double lr = 1e-2 / static_cast<double>(step);
    for (TrainStep* train : {&rows, &dense}) {
      set_synthetic_inputs(*train, model, 4, step);
      train->run(lr);
    }
    if (step % 4 == 0) {
      EXPECT_EQ(rows.weights_sha256(), dense.weights_sha256()) << "after step " << step;
    }
  }
}

}  // namespace
}  // namespace lockstep
