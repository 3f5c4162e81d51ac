// Runs on tables with transforms: the same bits for one and for two workers and after a restart, with
// constants that are kept with the run.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "run/train_case.h"

namespace lockstep {
namespace {

constexpr const char* kJob = R"(
name: transforms
model: {family: tabular, dim: 4, rows: 600, bottom: [8], top: [8]}
data:
  train:
    format: csv
    files: unset
    label: is_fraud
    columns: {ignore: [card, time, hour]}
    transforms:
      - {name: bucketise, columns: [amount], as: [amount_bucket], quantiles: 8}
      - {name: vocabulary, columns: [merchant], size: 100, min_count: 2}
      - {name: cross, columns: [amount_bucket, channel], buckets: 50}
      - {name: time_features, column: time, features: [weekday, hour_cyclic]}
      - {name: fill, columns: [previous_amount, mean_amount], method: median}
      - {name: log, columns: [amount, previous_amount, mean_amount]}
      - {name: normalise, columns: [amount]}
      - {name: cast, columns: [known_merchant], to: text}
  hold_out: 0.4
  seed: 3
train:
  steps: 20
  global_batch: 64
  microbatch: 8
  lr: {base: 1e-2}
  eval: {every: 10}
strategy: {leaves: 4, threads: 2}
checkpoint: {every: 10, keep: 2}
)";

class RunWithTransforms : public ::testing::Test {
 protected:
  RunWithTransforms() {
    const Ended synth = LockstepProcess({"data", "synth", "fraud", "--rows", "4000", "--shards", "3", "--out",
                                         job_.folder().path("tx")},
                                        job_.log("synth"))
                            .wait();
    EXPECT_EQ(synth.code, 0) << synth.err;
  }

  std::vector<std::string> with(std::vector<std::string> settings) const {
    settings.push_back("data.train.files=" + job_.folder().path("tx/train-*.csv"));
    return settings;
  }
  const TrainCase& job() const { return job_; }

 private:
  TrainCase job_{kJob};
};

TEST_F(RunWithTransforms, TrainsTheSameOnOneAndTwoWorkersAndInParts) {
  const RunSummary one = job().trained("one", with({}));
  std::filesystem::remove_all(job().folder().path("tx/.lockstep-index"));  // so that each worker fits anew
  const RunSummary two = job().trained("two", with({"strategy.workers=2", "strategy.threads=1"}));
  EXPECT_EQ(two.weights_sha256, one.weights_sha256);
  EXPECT_EQ(two.identity_sha256, one.identity_sha256);
  expect_same_steps(job().metrics("two"), job().metrics("one"));
  expect_same_evaluations(job().metrics("two"), job().metrics("one"));
  job().trained("parts", with({"train.steps=10"}));
  EXPECT_EQ(job().trained("parts", with({"strategy.workers=2"})).weights_sha256, one.weights_sha256);

  const std::string constants = job().text("one", "encoding.txt");
  for (const char* part : {"transform vocabulary 1 columns=8:merchant,", "column merchant: ",
                           "column amount: ", "categorical merchant ids=102\n", " as_is\n"})
    EXPECT_NE(constants.find(part), std::string::npos) << part << " is not in\n" << constants;
  EXPECT_EQ(job().text("two", "encoding.txt"), constants);
}

TEST_F(RunWithTransforms, ShowsTheValuesOfARecord) {
  const Ended at = LockstepProcess({"data", "at", job().folder().path("job.yaml"), "7", "--inputs", "--set",
                                    "data.train.files=" + job().folder().path("tx/train-*.csv")},
                                   job().log("at"))
                       .wait();
  EXPECT_EQ(at.code, 0) << at.err;
  for (const char* part : {"  time = \"2025-", "made by transforms\n", "  amount_bucket = ", "  merchant = ",
                           "  time_hour_sin = ", "  amount_bucket_x_channel = ", "  known_merchant = \"",
                           "inputs of the model\n", "  dense = "})
    EXPECT_NE(at.out.find(part), std::string::npos) << part << " is not in\n" << at.out;
}

TEST_F(RunWithTransforms, OtherTransformsAreAnotherRun) {
  const std::string fewer = "data.train.transforms=[{name: clip, columns: [amount], high: 50}]";
  const RunSummary clipped = job().trained("clipped", with({fewer, "train.steps=2"}));
  EXPECT_NE(clipped.identity_sha256, job().trained("all", with({"train.steps=2"})).identity_sha256);
  const Ended ended = job().train("wrong", with({"data.train.transforms=[{name: clip, columns: [amuont]}]"}));
  EXPECT_NE(ended.code, 0);
  EXPECT_NE(ended.err.find("transform clip: there is no column 'amuont'; did you mean amount?"),
            std::string::npos)
      << ended.err;
}

constexpr const char* kTextJob = R"(
name: text
model: {family: encoder, layers: 1, dim: 16, heads: 2, vocab: 260, seq: 24, classes: 3}
data:
  train: {format: jsonl, files: unset, text: subject, label: kind}
  hold_out: 0.2
  seed: 3
train:
  steps: 12
  global_batch: 32
  microbatch: 4
  lr: {base: 1e-2}
  eval: {every: 6, metric: accuracy}
strategy: {leaves: 4, threads: 1}
checkpoint: {every: 6, keep: 2}
)";

TEST(RunOnText, TrainsTheSameOnOneAndTwoWorkers) {
  const TrainCase job(kTextJob);
  std::string lines;
  for (int i = 0; i < 200; ++i)
    lines +=
        fmt::format("{{\"subject\": \"{} {}\", \"kind\": {}}}\n",
                    std::vector{"win a prize", "your invoice of", "lunch at"}[static_cast<size_t>(i % 3)],
                    i * 7919 % 1000, i % 3);
  job.folder().write("mail.jsonl", lines);
  const std::string files = "data.train.files=" + job.folder().path("mail.jsonl");
  const RunSummary one = job.trained("one", {files});
  const RunSummary two = job.trained("two", {files, "strategy.workers=2"});
  EXPECT_EQ(two.weights_sha256, one.weights_sha256);
  expect_same_evaluations(job.metrics("two"), job.metrics("one"));
  EXPECT_LT(job.metrics("one").steps.back().loss, job.metrics("one").steps.front().loss);
  const RunSummary tokens = job.trained(
      "tokens", {files, "data.train.transforms=[{name: tokenise, columns: [subject], shift: 2, first: 1}]"});
  EXPECT_NE(tokens.weights_sha256, one.weights_sha256);
  const Ended ended = job.train("none", {files, "data.train.text="});
  EXPECT_NE(ended.err.find("data.train.text is missing"), std::string::npos) << ended.err;
}

}  // namespace
}  // namespace lockstep
