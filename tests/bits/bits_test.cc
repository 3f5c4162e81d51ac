// The promise on one worker: one weights_sha256 for any number of threads, any recompute policy, and with any
// pass that does not change arithmetic switched off.
#include <gtest/gtest.h>

#include <map>

#include "graph/text.h"
#include "model/encoder.h"
#include "model/gpt.h"
#include "model/llama.h"
#include "model/resnet.h"
#include "model/tabular.h"
#include "ops/registry.h"
#include "train/step/synthetic.h"
#include "train/step/train_step.h"

namespace lockstep {
namespace {

constexpr int64_t kSteps = 2;

const std::map<std::string, Model>& models() {
  static const std::map<std::string, Model> all = [] {
    std::map<std::string, Model> made;
    made.emplace("gpt", build_gpt({2, 48, 3, 101, 3, 37, 0.1}));
    LlamaSizes llama{.layers = 2,
                     .dim = 48,
                     .heads = 6,
                     .kv_heads = 2,
                     .hidden = 100,
                     .vocab = 101,
                     .batch = 3,
                     .seq = 37};
    made.emplace("llama", build_llama(llama));
    llama.tied = true;
    made.emplace("llama_tied", build_llama(llama));
    made.emplace("encoder", build_encoder({2, 48, 3, 192, 61, 3, 4, 19, 0.1, true}));
    made.emplace("tabular", build_tabular({3, 301, 16, 5, {33, 17}, {40, 20}, 70}));
    made.emplace("resnet", build_resnet({18, 8, 32, 10, 4}));
    return made;
  }();
  return all;
}

std::string hash_after(const Model& model, int threads, const PassOptions& passes) {
  const auto backend = make_cpu_backend(threads);
  TrainOptions options;
  options.passes = passes;
  options.seed = 5;
  TrainStep train(model, *backend, options);
  for (int64_t step = 1; step <= kSteps; ++step) {
    set_synthetic_inputs(train, model, 9, step);
    train.run(1e-2);
  }
  return train.weights_sha256();
}

class Bits : public ::testing::TestWithParam<std::string> {
 protected:
  const Model& model() const { return models().at(GetParam()); }
};

TEST_P(Bits, AnyNumberOfThreads) {
  const std::string want = hash_after(model(), 1, {});
  for (const int threads : {2, 3, 8})
    EXPECT_EQ(hash_after(model(), threads, {}), want) << threads << " threads";
}

TEST_P(Bits, AnyRecomputePolicy) {
  const std::string want = hash_after(model(), 2, {});
  for (const Recompute policy : {Recompute::kFused, Recompute::kCheap, Recompute::kBlock}) {
    PassOptions passes;
    passes.recompute = policy;
    EXPECT_EQ(hash_after(model(), 2, passes), want) << name_of(policy);
  }
}

TEST_P(Bits, StochasticRoundingIsCounted) {
  PassOptions passes;
  passes.compute = DType::kBF16;
  const std::string nearest = hash_after(model(), 2, passes);
  passes.stochastic_rounding = true;
  const std::string want = hash_after(model(), 1, passes);
  EXPECT_NE(want, nearest);
  EXPECT_EQ(hash_after(model(), 3, passes), want);
  for (const Recompute policy : {Recompute::kFused, Recompute::kCheap, Recompute::kBlock}) {
    passes.recompute = policy;
    EXPECT_EQ(hash_after(model(), 2, passes), want) << name_of(policy);
  }
}

TEST_P(Bits, EveryPassThatKeepsArithmetic) {
  const std::string want = hash_after(model(), 2, {});
  for (const Pass& pass : all_passes()) {
    if (pass.changes_arithmetic) continue;
    PassOptions passes;
    passes.disabled = {std::string(pass.name)};
    EXPECT_EQ(hash_after(model(), 2, passes), want) << "without " << pass.name;
  }
}

TEST_P(Bits, OtherSeedsGiveOtherBits) {
  const auto backend = make_cpu_backend(1);
  TrainOptions options;
  TrainStep a(model(), *backend, options);
  options.seed = 1;
  TrainStep b(model(), *backend, options);
  EXPECT_NE(a.weights_sha256(), b.weights_sha256());
}

TEST_P(Bits, TheTextFormRoundTrips) {
  const std::string text = to_text(model().graph);
  EXPECT_EQ(to_text(parse_graph(text, all_ops())), text);
  const std::string lowered = to_text(run_passes(model().graph, {}));
  EXPECT_EQ(to_text(parse_graph(lowered, all_ops())), lowered);
}

INSTANTIATE_TEST_SUITE_P(Models, Bits,
                         ::testing::Values("gpt", "llama", "llama_tied", "encoder", "tabular", "resnet"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace lockstep
