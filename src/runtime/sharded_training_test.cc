// Training through the collectives of a graph: models split over the tensor axis, the batch over the data
// axis, and both, against the same model on one rank.
#include <gtest/gtest.h>

#include "graph/text.h"
#include "ops/builder.h"
#include "ops/registry.h"
#include "runtime/sharded_training_testing.h"

namespace lockstep::testing {
namespace {

constexpr int kSteps = 5;

// Two layers, the first split by columns and the second by rows.
TrainingCase mlp() {
  TrainingCase result{parse_graph(R"(graph mlp(x: f32[8,12], y: f32[8,4], w1: f32[12,16] @param,
      b1: f32[16] @param, w2: f32[16,4] @param, b2: f32[4] @param) {
    h = matmul(x, w1)
    c1 = broadcast(b1) {shape=[8,16]}
    g = add(h, c1)
    a = gelu(g)
    z = matmul(a, w2)
    c2 = broadcast(b2) {shape=[8,4]}
    o = add(z, c2)
    loss, count = mse(o, y)
    return loss, count
  })",
                                  all_ops())};
  result.tensor = {{"w1", Placement::split(1)}, {"b1", Placement::split(0)}, {"w2", Placement::split(0)}};
  result.data = {{"x", Placement::split(0)}, {"y", Placement::split(0)}};
  return result;
}

// A transformer with heads and hidden units split as Megatron-LM does.
class Transformer {
 public:
  static constexpr int64_t kBatch = 4, kSeq = 6, kWidth = 16, kHeads = 4, kVocab = 20, kLayers = 2;

  TrainingCase build() {
    const Value tokens = b_.input("tokens", {DType::kI32, {kBatch, kSeq}});
    const Value targets = b_.input("targets", {DType::kI32, {kBatch, kSeq}});
    const Value table = b_.param("table", {kVocab, kWidth});
    Value x = b_.add(b_.op("embedding", {table, tokens}), b_.param("places", {kSeq, kWidth}));
    for (int64_t layer = 0; layer < kLayers; ++layer) x = block(fmt::format("h{}.", layer), x);
    x = b_.reshape(norm("norm", x), {kBatch * kSeq, kWidth});
    const auto loss =
        b_.op_all("cross_entropy", {b_.matmul(x, table, false, true), b_.reshape(targets, {kBatch * kSeq})});
    case_.graph.add_output(loss[0]);
    case_.graph.add_output(loss[1]);
    case_.integer_inputs = {{"tokens", kVocab}, {"targets", kVocab}};
    case_.data = {{"tokens", Placement::split(0)}, {"targets", Placement::split(0)}};
    return std::move(case_);
  }

 private:
  Value norm(const std::string& name, Value x) {
    return b_.op("layer_norm", {x, b_.param(name + ".weight", {kWidth}), b_.param(name + ".bias", {kWidth})});
  }

  // Outputs split: columns of the weight, elements of the bias.
  Value by_columns(const std::string& name, Value x, int64_t out) {
    case_.tensor.emplace(name + ".weight", Placement::split(1));
    case_.tensor.emplace(name + ".bias", Placement::split(0));
    return linear(name, x, out);
  }
  // Inputs split: rows of the weight.
  Value by_rows(const std::string& name, Value x, int64_t out) {
    case_.tensor.emplace(name + ".weight", Placement::split(0));
    return linear(name, x, out);
  }
  Value linear(const std::string& name, Value x, int64_t out) {
    const Value weight = b_.param(name + ".weight", {b_.shape(x)[-1], out});
    return b_.add(b_.matmul(x, weight), b_.param(name + ".bias", {out}));
  }

  Value block(const std::string& name, Value x) {
    const Value normed = norm(name + "norm1", x);
    const auto heads = [&](const std::string& which) {
      return b_.reshape(by_columns(name + which, normed, kWidth), {kBatch, kSeq, kHeads, kWidth / kHeads});
    };
    const Value q = heads("q"), k = heads("k"), v = heads("v");
    const Value mixed = b_.reshape(b_.op("attention", {q, k, v}, {{"causal", true}}), {kBatch, kSeq, kWidth});
    x = b_.add(x, by_rows(name + "out", mixed, kWidth));
    const Value hidden = b_.op("gelu", {by_columns(name + "up", norm(name + "norm2", x), 4 * kWidth)});
    return b_.add(x, by_rows(name + "down", hidden, kWidth));
  }

  TrainingCase case_{Graph(all_ops(), "transformer")};
  Builder b_{case_.graph};
};

int collectives(const Graph& graph, std::string_view op) {
  return static_cast<int>(std::count_if(graph.nodes().begin(), graph.nodes().end(),
                                        [&](const Node& node) { return node.op->name == op; }));
}

void expect_near(const Trained& got, const Trained& want, double tolerance) {
  for (size_t step = 0; step < want.losses().size(); ++step)
    EXPECT_NEAR(got.losses().at(step), want.losses()[step], tolerance * want.losses()[step]) << step;
  for (const auto& [name, weights] : want.weights())
    for (size_t i = 0; i < weights.size(); ++i)
      ASSERT_NEAR(got.weights().at(name)[i].value(), *weights[i], tolerance) << name << "[" << i << "]";
}

// As on one rank within rounding; what several ranks have, has the same bits on all (Trained sees to that),
// and so has a second run.
void expect_trains_alike(const TrainingCase& training, const MeshShape& shape, float lr) {
  const Trained whole = train_whole(training, kSteps, lr);
  EXPECT_LT(whole.losses().back(), whole.losses().front());
  const Trained split = train_on_mesh(training, shape, kSteps, lr);
  expect_near(split, whole, 2e-5);
  EXPECT_TRUE(train_on_mesh(training, shape, kSteps, lr) == split);
}

TEST(ShardedTraining, AnMlpSplitOverTensorRanks) {
  expect_trains_alike(mlp(), {.tensor = 2}, 0.01F);
  expect_trains_alike(mlp(), {.tensor = 4}, 0.01F);
}

TEST(ShardedTraining, AnMlpOnPartsOfTheBatch) {
  expect_trains_alike(mlp(), {.data = 2}, 0.01F);
  expect_trains_alike(mlp(), {.data = 4}, 0.01F);
}

TEST(ShardedTraining, AnMlpOnAMeshOfBoth) { expect_trains_alike(mlp(), {.data = 2, .tensor = 2}, 0.01F); }

TEST(ShardedTraining, ATransformerSplitOverTensorRanks) {
  expect_trains_alike(Transformer().build(), {.tensor = 2}, 0.003F);
}

TEST(ShardedTraining, ATransformerOnPartsOfTheBatch) {
  expect_trains_alike(Transformer().build(), {.data = 2}, 0.003F);
}

TEST(ShardedTraining, ATransformerOnAMeshOfBoth) {
  expect_trains_alike(Transformer().build(), {.data = 2, .tensor = 2}, 0.003F);
}

// Two sums per layer forward, one after attention and one after the hidden units, and two backward; nothing
// else is sent.
TEST(ShardedTraining, ATransformerSendsWhatMegatronSends) {
  const TrainingCase training = Transformer().build();
  on_mesh_threads({.tensor = 2}, [&](Mesh& mesh) {
    const Trainer trainer(training, &mesh);
    const Graph& graph = trainer.executable().graph();
    EXPECT_EQ(collectives(graph, "all_reduce_start"), 4 * Transformer::kLayers) << to_text(graph);
    for (const char* other : {"all_gather_start", "reduce_scatter_start", "all_to_all_start"})
      EXPECT_EQ(collectives(graph, other), 0) << other;
  });
}

}  // namespace
}  // namespace lockstep::testing
