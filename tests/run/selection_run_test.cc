// Jobs that use some of their records: the same bits for any number of workers, after a restart, and the
// tools on what is selected and mixed.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>

#include "run/lockstep_process.h"
#include "run/train_case.h"

namespace lockstep {
namespace {

using Settings = std::vector<std::string>;

constexpr const char* kJob = R"(
name: selected
model: {family: tabular, dim: 4, rows: 50, bottom: [8], top: [8]}
data:
  train: {format: csv, files: unset, label: is_fraud}
  filter: "amount > 20 and country != 'PT'"
  subsample: {where: is_fraud == 0, keep: 0.5}
  hold_out: 0.1
  seed: 3
train: {steps: 12, global_batch: 64, microbatch: 8, lr: {base: 1e-2, decay: constant, warmup: 0}, eval: {every: 6}}
strategy: {threads: 1, leaves: 4}
)";

class RunOnSelection : public ::testing::Test {
 protected:
  RunOnSelection() {
    const Ended synth = lockstep(
        {"data", "synth", "fraud", "--rows", "3000", "--shards", "3", "--out", job_.folder().path("tx")});
    EXPECT_EQ(synth.code, 0) << synth.err;
  }
  Ended lockstep(const Settings& arguments) const {
    return LockstepProcess(arguments, job_.log("tool")).wait();
  }
  std::string files(const std::string& name) const { return job_.folder().path("tx/" + name); }
  Ended tool(const std::string& name, const Settings& settings, const Settings& flags = {}) const {
    Settings all = {"data", name, job_.folder().path("job.yaml"), "--set",
                    "data.train.files=" + files("train-*.csv")};
    for (const std::string& setting : settings) all.insert(all.end(), {"--set", setting});
    all.insert(all.end(), flags.begin(), flags.end());
    return lockstep(all);
  }
  RunSummary trained(const std::string& run, Settings settings = {}) const {
    settings.insert(settings.begin(), "data.train.files=" + files("train-*.csv"));
    return job_.trained(run, settings);
  }
  const TrainCase& job() const { return job_; }

 private:
  TrainCase job_{kJob};
};

void expect_says(const Ended& ended, const Settings& words) {
  EXPECT_EQ(ended.code, 0) << ended.err;
  for (const std::string& word : words) EXPECT_NE(ended.out.find(word), std::string::npos) << ended.out;
}

TEST_F(RunOnSelection, GivesTheSameBitsForAnyWorkersAndAfterARestart) {
  const RunSummary one = trained("one");
  for (const int count : {2, 3}) {
    const std::string run = fmt::format("with-{}", count);
    const RunSummary found = trained(run, {fmt::format("strategy.workers={}", count)});
    EXPECT_EQ(found.weights_sha256, one.weights_sha256) << count << " workers";
    EXPECT_EQ(found.identity_sha256, one.identity_sha256);
    expect_same_steps(job().metrics(run), job().metrics("one"));
    expect_same_evaluations(job().metrics(run), job().metrics("one"));
  }
  trained("parts", {"train.steps=5", "strategy.workers=2"});
  EXPECT_EQ(trained("parts").weights_sha256, one.weights_sha256);
}

TEST_F(RunOnSelection, WhatIsSelectedIsPartOfTheIdentity) {
  const RunSummary one = trained("one");
  const RunSummary spelled = trained("spelled", {"data.filter=(amount>20.0) and `country` != 'PT'"});
  EXPECT_EQ(spelled.identity_sha256, one.identity_sha256);
  EXPECT_EQ(spelled.weights_sha256, one.weights_sha256);
  for (const char* change :
       {"data.filter=amount > 21", "data.subsample.keep=0.4", "data.subsample.reweight=false"}) {
    const RunSummary other = trained(change, {change});
    EXPECT_NE(other.identity_sha256, one.identity_sha256) << change;
    EXPECT_NE(other.weights_sha256, one.weights_sha256) << change;
  }
}

TEST_F(RunOnSelection, ExpressionsAreRefusedByTheirLine) {
  const Ended refused = tool("inspect", {"data.subsample.where=is_fraud = 0"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_NE(refused.err.find("data.subsample.where: at character 10 of the filter: equality is written =="),
            std::string::npos)
      << refused.err;
  EXPECT_NE(tool("inspect", {"data.filter=amuont > 3"}).err.find("did you mean amount"), std::string::npos);
  EXPECT_NE(tool("inspect", {"data.hold_out=0", "data.split.eval=0.1"}).err.find("write data.split.column"),
            std::string::npos);
}

TEST_F(RunOnSelection, ToolsWorkOnWhatIsSelected) {
  expect_says(tool("inspect", {}), {"weights f32[]", "csv: 2400 records in 3 shards"});
  expect_says(tool("verify", {}, {"--workers", "1,2,3", "--read"}),
              {"records exactly once, in one sequence"});
  expect_says(tool("at", {}, {"40", "--inputs"}), {"position 40: ", "amount = ", "weights = "});
}

TEST_F(RunOnSelection, MixturesAreProvedBySource) {
  const std::string list =
      fmt::format("[{}, {}]", files("train-00000-of-00003.csv"), files("train-00001-of-00003.csv"));
  const Settings mixed = {
      "data.train.files=" + list, "data.train.weights=[0.3, 0.7]",
      "data.hold_out=0",          "data.train.weight_changes=[{at: 300, weights: [0.9, 0.1]}]",
      "train.steps=40",           "train.eval.every="};
  expect_says(tool("verify", mixed, {"--workers", "1,2,3", "--read"}),
              {"3 workers: every record exactly once", "train-00000-of-00003.csv: epoch 0, ",
               "records, each once", "one sequence for 1, 2, 3 workers"});
  expect_says(tool("shuffle-report", mixed), {"a mixture, by its sources", "train-00001-of-00003.csv: "});
  expect_says(tool("at", mixed, {"500"}), {"position 500: epoch "});
  const RunSummary one = trained("mixed", mixed);
  Settings three = mixed;
  three.emplace_back("strategy.workers=3");
  EXPECT_EQ(trained("mixed-3", three).weights_sha256, one.weights_sha256);
  Settings constant = mixed;
  constant[3] = "data.train.weight_changes=[{at: 301, weights: [0.9, 0.1]}]";
  EXPECT_NE(trained("mixed-other", constant).weights_sha256, one.weights_sha256);
  const Ended refused = tool("inspect", {"data.train.weight_changes=[{at: 5, weights: [1]}]"});
  EXPECT_NE(refused.err.find("which are not given"), std::string::npos) << refused.err;
}

}  // namespace
}  // namespace lockstep
