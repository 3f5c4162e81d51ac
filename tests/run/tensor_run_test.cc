// Runs whose matrices are cut into leaves: the same bits on every number of tensor ranks that shares them,
// checkpoints that any layout goes on from, and faults that are named with their place in the mesh.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <csignal>

#include "run/worker_processes.h"

namespace lockstep {
namespace {

using Settings = std::vector<std::string>;

Settings operator+(Settings a, const Settings& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

struct Layout {
  int tensor = 2;
  int data = 1;
  int pipeline = 1;
  Settings more = {};
};

Settings settings_of(const Layout& how) {
  return Settings{fmt::format("strategy.workers={}", how.data * how.pipeline * how.tensor),
                  fmt::format("strategy.tensor={}", how.tensor),
                  fmt::format("strategy.pipeline={}", how.pipeline)} +
         how.more;
}

const Settings kFourLeaves = {"strategy.tensor_leaves=4", "strategy.leaves=2", "strategy.threads=1"};
const Settings kTwoLeaves = {"strategy.tensor_leaves=2", "strategy.leaves=2", "strategy.threads=1"};

void expect_bits_of_one(const char* text, const Settings& more, const std::vector<Layout>& layouts,
                        int64_t steps = 5) {
  const TrainCase job(text);
  const Settings settings = more + Settings{fmt::format("train.steps={}", steps)};
  const RunSummary one = job.trained("one", settings);
  for (const Layout& how : layouts) {
    const std::string run = fmt::format("tensor-{}-data-{}-pipeline-{}-{}", how.tensor, how.data,
                                        how.pipeline, fmt::join(how.more, "-"));
    SCOPED_TRACE(run);
    const RunSummary found = job.trained(run, settings + settings_of(how));
    EXPECT_EQ(found.weights_sha256, one.weights_sha256);
    EXPECT_EQ(found.identity_sha256, one.identity_sha256);
    expect_same_steps(job.metrics(run), job.metrics("one"));
    expect_same_evaluations(job.metrics(run), job.metrics("one"));
    for (const char* file : {"model.safetensors", "optimizer.safetensors", "average.safetensors"}) {
      const std::string path = fmt::format("checkpoint-{}/{}", steps, file);
      if (!job.has("one", path)) continue;
      EXPECT_TRUE(job.text(run, path) == job.text("one", path)) << path;
    }
  }
}

const Settings kEightHeads = {"model.dim=32", "model.heads=8", "model.layers=2"};

TEST(TensorRun, GivesOneHashForEveryDegree) {
  expect_bits_of_one(kGptJob, kFourLeaves + kEightHeads, {{2}, {4}, {2, 2}});
}
TEST(TensorRun, GivesOneHashWithGroupedHeadsInBf16) {
  expect_bits_of_one(kLlamaJob, kTwoLeaves + Settings{"train.ema=0.9"}, {{2}, {1, 2}});
}
TEST(TensorRun, GoesTogetherWithPipelineAndZero) {
  expect_bits_of_one(kLlamaJob, kTwoLeaves + Settings{"train.ema=0.9", "train.optimizer.name=sgd"},
                     {{2, 1, 2}, {2, 2, 1, {"strategy.zero=1"}}});
}
TEST(TensorRun, GoesTogetherWithPipelineInPureBf16) {
  expect_bits_of_one(kLlamaJob, kTwoLeaves + Settings{"train.precision=bf16_pure", "train.moments=bf16"},
                     {{2, 1, 2}});
}
// Without memory in common: a host each.
TEST(TensorRun, GoesTogetherWithParametersInPieces) {
  expect_bits_of_one(kLlamaJob, kTwoLeaves + Settings{"train.ema=0.9"},
                     {{2, 2, 1, {"strategy.zero=3", "strategy.transport=ucx"}},
                      {1, 2, 1, {"strategy.zero=3", "strategy.transport=ucx"}}});
}

// One worker has all leaves, and no parameter in one piece.
TEST(TensorRun, EvaluatesLeavesUnitByUnit) {
  const Settings small = {"strategy.reduce.bucket=4KiB", "train.eval.every=2"};
  expect_bits_of_one(kGptJob, small + kFourLeaves + kEightHeads, {{2}, {2, 1, 2}});
  expect_bits_of_one(kLlamaJob, small + kTwoLeaves + Settings{"train.ema=0.9"},
                     {{2, 2, 1, {"strategy.zero=2"}}, {2, 1, 2}});
}

// The vocabulary of these jobs is cut, of gpt in a table that the last stage reads too.
TEST(TensorRun, SharesATiedTableBetweenStages) {
  expect_bits_of_one(kGptJob, kFourLeaves + kEightHeads,
                     {{2, 1, 2}, {4, 1, 2}, {1, 2, 2, {"strategy.zero=3"}}, {2, 2, 2, {"strategy.zero=1"}}});
}
TEST(TensorRun, SharesATiedTableInBf16) {
  expect_bits_of_one(kLlamaJob, kTwoLeaves + Settings{"model.tied=true"}, {{2}, {2, 1, 2}});
}
TEST(TensorRun, LeavesAVocabularyWholeThatIsNotEven) {
  expect_bits_of_one(kGptJob, kFourLeaves + kEightHeads + Settings{"model.vocab=34"}, {{2}, {4, 1, 2}});
}

class TensorRunLong : public ::testing::TestWithParam<std::tuple<NamedJob, std::string>> {};
TEST_P(TensorRunLong, GivesOneHashOnEveryMesh) {
  const auto [job, precision] = GetParam();
  std::vector<Layout> layouts;
  for (const int tensor : {1, 2, 4})
    for (const int data : {1, 2})
      for (const int pipeline : {1, 2})
        for (const int zero : {0, 1, 2, 3})
          if (tensor * data * pipeline > 1 && tensor * data * pipeline <= 8 && (data > 1 || zero == 0))
            layouts.push_back(
                {tensor, data, pipeline, {fmt::format("strategy.zero={}", zero), "strategy.transport=ucx"}});
  Settings settings = kFourLeaves + kEightHeads + Settings{"train.precision=" + precision};
  if (job == kLlamaJob) settings = settings + Settings{"model.kv_heads=4", "model.hidden=48"};
  if (job == kEncoderJob) settings = settings + Settings{"model.dropout=0.1"};
  if (job == kGptJob) settings = settings + Settings{"strategy.leaves=4"};
  expect_bits_of_one(job, settings, layouts, 20);
}
INSTANTIATE_TEST_SUITE_P(Families, TensorRunLong,
                         ::testing::Combine(::testing::Values(kGptJob, kLlamaJob, kEncoderJob),
                                            ::testing::Values("fp32", "bf16", "bf16_pure")));

TEST(TensorRun, GoesOnUnderAnotherDegree) {
  const TrainCase job(kGptJob);
  const Settings settings =
      kFourLeaves + kEightHeads + Settings{"train.lr.decay=constant", "train.lr.warmup=2", "train.ema=0.9"};
  const RunSummary whole = job.trained("whole", settings + Settings{"train.steps=8"});
  int64_t end = 2;
  for (const Layout& how : {Layout{2}, {1}, {4}, {2, 2, 1, {"strategy.zero=1"}}}) {
    const RunSummary part =
        job.trained("parts", settings + settings_of(how) + Settings{fmt::format("train.steps={}", end)});
    EXPECT_EQ(part.steps, end);
    end += 2;
  }
  EXPECT_EQ(job.summary("parts").weights_sha256, whole.weights_sha256);
}

TEST(TensorRun, StartsFromWeightsOfAnother) {
  const TrainCase job(kGptJob);
  job.trained("other", kEightHeads + Settings{"train.steps=3", "train.seed=8", "train.lr.warmup=1"});
  const Settings settings =
      kFourLeaves + kEightHeads +
      Settings{"train.steps=2", "train.lr.warmup=1", "train.init_from.run=" + job.output("other")};
  const RunSummary one = job.trained("one", settings);
  EXPECT_EQ(job.trained("two", settings + settings_of({2, 2})).weights_sha256, one.weights_sha256);
}

// One process uses what several have trained.
TEST(TensorRun, IsUsedLikeAnyOther) {
  const TrainCase job(kGptJob);
  const Settings settings = kFourLeaves + kEightHeads + Settings{"train.steps=2", "train.lr.warmup=1"};
  job.trained("run", settings + settings_of({2, 2}));
  const Ended eval = LockstepProcess({"eval", job.output("run")}, job.log("eval")).wait();
  EXPECT_EQ(eval.code, 0) << eval.err;
  const Ended exported = LockstepProcess({"export", job.output("run"), "--to", "onnx", "--out",
                                          job.output("run") + "/model.onnx"},
                                         job.log("export"))
                             .wait();
  EXPECT_EQ(exported.code, 0) << exported.err;
}

// Another number of leaves is another run.
TEST(TensorRun, LeavesArePartOfTheIdentity) {
  const TrainCase job(kGptJob);
  const Settings settings =
      kFourLeaves + kEightHeads + Settings{"train.lr.warmup=1", "train.lr.decay=constant"};
  job.trained("run", settings + Settings{"train.steps=2"});
  const Ended ended = job.train("run", settings + Settings{"train.steps=4", "strategy.tensor_leaves=2"});
  EXPECT_NE(ended.code, 0);
  EXPECT_NE(ended.err.find("strategy.tensor_leaves: checkpoint 4, job 2"), std::string::npos) << ended.err;
}

TEST(TensorRun, AKilledWorkerIsNamedWithItsPlaceInTheMesh) {
  const TrainCase job(kLlamaJob);
  WorkersInTraining run(job, "run",
                        kTwoLeaves + settings_of({2, 2}) +
                            Settings{"train.steps=10000000", "train.lr.decay=constant", "train.eval.every="});
  run.send(3, SIGKILL);
  const Ended ended = run.wait();
  EXPECT_EQ(ended.code, 1);
  EXPECT_NE(ended.err.find("worker-3 failed first: killed by SIGKILL"), std::string::npos) << ended.err;
  EXPECT_NE(ended.err.find("rank 3 is data 1, tensor 1"), std::string::npos) << ended.err;
}

TEST(TensorRun, SaysWhatWouldDo) {
  const TrainCase job(kLlamaJob);
  const auto error = [&](const Settings& settings) { return job.train("run", settings).err; };
  EXPECT_NE(error({"strategy.tensor=4"})
                .find("does not divide the 2 heads that "
                      "model.layers.0.self_attn.k_proj.weight makes; use 2"),
            std::string::npos);
  EXPECT_NE(error({"strategy.tensor=2", "strategy.tensor_leaves=6"}).find("use strategy.tensor 1, 3, 6"),
            std::string::npos);
  EXPECT_NE(error({"strategy.tensor=2", "train.optimizer.name=lamb"}).find("use adamw"), std::string::npos);
  const Ended odd = job.train("run", settings_of({2}) + Settings{"train.steps=5", "model.vocab=33"});
  EXPECT_NE((odd.out + odd.err)
                .find("strategy.tensor_leaves 2 does not divide the 33 rows of "
                      "model.embed_tokens.weight, which every tensor rank therefore has whole"),
            std::string::npos)
      << odd.out << odd.err;
}

}  // namespace
}  // namespace lockstep
