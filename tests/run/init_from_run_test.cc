// train.init_from: runs that start from the weights of another one.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "run/train_case.h"

namespace lockstep {
namespace {

// Steps that change nothing: what the run ends with is what it began with.
const std::vector<std::string> kAtRest = {"train.lr.base=0", "train.optimizer.weight_decay=0",
                                          "train.lr.warmup=0", "train.steps=2"};

std::vector<std::string> at_rest(std::vector<std::string> more) {
  more.insert(more.end(), kAtRest.begin(), kAtRest.end());
  return more;
}

TEST(InitFrom, BeginsWithTheWeightsOfAnotherRun) {
  for (const char* const text : {kTabularJob, kResnetJob}) {
    const TrainCase job(text);
    const RunSummary base = job.trained("base");
    const RunSummary drawn = job.trained("drawn", at_rest({}));
    const RunSummary taken = job.trained("taken", at_rest({"train.init_from=" + job.output("base")}));
    EXPECT_NE(drawn.weights_sha256, base.weights_sha256);
    EXPECT_NE(taken.identity_sha256, drawn.identity_sha256);
    // Running statistics move with every step.
    EXPECT_TRUE(text != kTabularJob || taken.weights_sha256 == base.weights_sha256);
    EXPECT_NE(taken.weights_sha256, drawn.weights_sha256);
    const RunSummary earlier = job.trained("earlier", at_rest({"train.init_from.run=" + job.output("base") +
                                                               "/checkpoint-" + std::to_string(base.steps)}));
    EXPECT_EQ(earlier.weights_sha256, taken.weights_sha256);
    EXPECT_EQ(earlier.identity_sha256, taken.identity_sha256);
  }
}

TEST(InitFrom, TheSameOnOneAndTwoWorkersAndAfterARestart) {
  const TrainCase job(kTabularJob);
  job.trained("base");
  const std::string from = "train.init_from=" + job.output("base");
  const RunSummary one = job.trained("one", {from});
  EXPECT_NE(one.weights_sha256, job.summary("base").weights_sha256);
  EXPECT_EQ(job.trained("two", {from, "strategy.workers=2"}).weights_sha256, one.weights_sha256);
  std::filesystem::remove_all(job.output("one") + "/checkpoint-30");
  const RunSummary again = job.trained("one", {from});
  EXPECT_EQ(again.restarts, 1);
  EXPECT_EQ(again.weights_sha256, one.weights_sha256);
}

TEST(InitFrom, TakesWhatPatternsSay) {
  const TrainCase job(kTabularJob);
  const RunSummary base = job.trained("base");
  const std::string from = "train.init_from.run=" + job.output("base");
  // A wider last part; its first layers fit.
  const Ended refused = job.train("refused", at_rest({from, "model.top=[12]"}));
  EXPECT_EQ(refused.code, 2);
  EXPECT_NE(refused.err.find("top.0.weight is f32["), std::string::npos) << refused.err;
  EXPECT_NE(refused.err.find("top.1.weight is f32["), std::string::npos) << refused.err;
  EXPECT_EQ(refused.err.find("bottom.0.weight is"), std::string::npos) << refused.err;
  const Ended taken =
      job.train("taken", at_rest({from, "model.top=[12]", "train.init_from.except=[\"top.*\"]"}));
  EXPECT_EQ(taken.code, 0) << taken.err;
  EXPECT_NE(taken.err.find("drawn: top.0.weight, top.0.bias, top.1.weight, top.1.bias"), std::string::npos)
      << taken.err;
  const RunSummary only = job.trained(
      "only", at_rest({from, "model.top=[12]", "train.init_from.only=[\"bottom.*\", \"table.*\"]"}));
  EXPECT_EQ(only.weights_sha256, job.summary("taken").weights_sha256);
  EXPECT_EQ(only.identity_sha256, job.summary("taken").identity_sha256);
  const Ended misspelt = job.train("misspelt", at_rest({from, "train.init_from.only=[\"botom.*\"]"}));
  EXPECT_EQ(misspelt.code, 2);
  EXPECT_NE(misspelt.err.find("fits no parameter"), std::string::npos) << misspelt.err;
}

TEST(InitFrom, RefusesWhatIsNoOtherRun) {
  const TrainCase job(kTabularJob);
  job.trained("base");
  const Ended own = job.train("base", {"train.init_from=" + job.output("base")}, {"--fresh"});
  EXPECT_EQ(own.code, 2);
  EXPECT_NE(own.err.find("this job itself writes"), std::string::npos) << own.err;
  EXPECT_TRUE(job.has("base", "checkpoint-30")) << "what it would start from was removed";
  const Ended nowhere = job.train("new", {"train.init_from=" + job.output("nowhere")});
  EXPECT_EQ(nowhere.code, 2);
  EXPECT_NE(nowhere.err.find("train.init_from.run: "), std::string::npos) << nowhere.err;
}

// Another source of weights is another run.
TEST(InitFrom, TheSourceIsPartOfTheIdentity) {
  const TrainCase job(kTabularJob);
  job.trained("base");
  job.trained("other", {"train.seed=9"});
  job.trained("run", {"train.init_from=" + job.output("base"), "train.steps=10"});
  const Ended refused = job.train("run", {"train.init_from=" + job.output("other"), "train.steps=10"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_NE(refused.err.find("train.init_from.weights: "), std::string::npos) << refused.err;
}

}  // namespace
}  // namespace lockstep
