#include "observe/run_view.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/test_folder.h"
#include "observe/metrics_file.h"
#include "observe/run_compare.h"
#include "observe/run_facts.h"
#include "observe/run_report.h"
#include "observe/summary.h"

namespace lockstep {
namespace {

StepRecord step(int64_t number) {
  StepRecord record;
  record.step = number;
  record.loss = 8.0 / static_cast<double>(number);
  record.lr = 1e-3;
  record.grad_norm = 2;
  record.samples = 32;
  record.count = 32;
  record.seconds = 0.25;
  record.shares.compute = 0.25;
  return record;
}

EvalRecord evaluation(int64_t number, bool best) {
  EvalRecord record;
  record.step = number;
  record.loss = 0.5;
  record.auc = 0.875;
  record.best = best;
  return record;
}

RunSummary summary(const std::string& weights) {
  RunSummary summary;
  summary.status = "done";
  summary.name = "fraud";
  summary.steps = 4;
  summary.final_loss = 2;
  summary.weights_sha256 = weights;
  summary.identity_sha256 = "abcd";
  summary.samples_per_second = 128;
  summary.peak_memory_bytes = 3 << 19;
  summary.workers = 1;
  summary.threads_per_worker = 2;
  return summary;
}

class RunViewTest : public ::testing::Test {
 protected:
  // A run of `steps` steps that has ended, if there are weights.
  std::string make_run(const std::string& name, int64_t steps, const std::string& weights = "") const {
    folder_.write(name + "/identity.json", R"([["train.seed", "7"], ["model", "tabular"]])");
    MetricsFile metrics(folder_.path(name + "/metrics.jsonl"));
    for (int64_t i = 1; i <= steps; ++i) metrics.add(step(i));
    if (!weights.empty()) write_summary(folder_.path(name + "/summary.json"), summary(weights));
    return folder_.path(name);
  }
  std::string refusal(const std::string& name) const {
    try {
      open_run(folder_.path(name));
    } catch (const UserError& error) {
      std::string text = error.what();
      const size_t at = text.find(folder_.path());
      return at == 0 ? text.substr(folder_.path().size()) : text;
    }
    return "opened";
  }

  TestFolder folder_;
};

TEST_F(RunViewTest, SaysWhatIsNoRun) {
  EXPECT_EQ(refusal("none"), "none: there is no such folder");
  folder_.write("file", "");
  EXPECT_EQ(refusal("file"), "file is no folder; give the folder that the job's `output` names");
  folder_.write("empty/notes.txt", "");
  EXPECT_EQ(refusal("empty"),
            "empty is no run: it has neither metrics.jsonl nor summary.json; give the folder that the job's "
            "`output` names");
}

TEST_F(RunViewTest, SaysWhichFileIsDamaged) {
  make_run("a", 1);
  folder_.write("a/identity.json", R"([["train.seed", 7]])");
  EXPECT_EQ(refusal("a"),
            "a/identity.json: this is no list of [name, value]; it was damaged after it was written");
  make_run("a", 1);
  folder_.write("a/summary.json", "{}");
  EXPECT_EQ(refusal("a"), "a/summary.json: there is no field 'status'");
  folder_.write("a/metrics.jsonl", "{}\n");
  EXPECT_EQ(refusal("a"), "a/metrics.jsonl:1: the line's 'kind' is neither \"step\" nor \"eval\"");
}

TEST_F(RunViewTest, AnUnfinishedRunIsKnownFromItsMetrics) {
  const std::string path = make_run("a", 3);
  {
    MetricsFile metrics(path + "/metrics.jsonl", 3);
    metrics.add(evaluation(2, true));
    StepRecord skipped = step(4);
    skipped.action = kSkipped;
    metrics.add(skipped);
    metrics.add(evaluation(4, false));
  }
  const RunView run = open_run(path);
  EXPECT_FALSE(run.finished);
  EXPECT_EQ(run.summary.status, "unfinished");
  EXPECT_EQ(run.summary.steps, 4);
  EXPECT_EQ(run.summary.skipped_steps, 1);
  EXPECT_EQ(run.summary.final_loss, 8.0 / 3);
  EXPECT_EQ(run.summary.samples_per_second, 128);
  EXPECT_EQ(run.summary.best_eval->step, 2);
  EXPECT_EQ(run.summary.final_eval->step, 4);
  EXPECT_EQ(run.summary.weights_sha256, "");
  EXPECT_NE(run_report(run).find("there is no summary.json"), std::string::npos);
}

TEST_F(RunViewTest, EvaluationsOfStepsThatWereRewoundDoNotCount) {
  const std::string path = make_run("a", 4);
  {
    MetricsFile metrics(path + "/metrics.jsonl", 4);
    metrics.add(evaluation(4, true));
    metrics.add(step(3));
  }
  EXPECT_TRUE(open_run(path).evaluations.empty());
}

TEST_F(RunViewTest, ReportHasFiguresEvaluationsAndPlot) {
  const std::string path = make_run("a", 4, "1234");
  {
    MetricsFile metrics(path + "/metrics.jsonl", 4);
    metrics.add(evaluation(4, true));
  }
  RunView run = open_run(path);
  run.folder = "runs/a";
  run.summary.best_eval = run.evaluations[0];
  EXPECT_EQ(run_report(run, {.width = 36, .unicode = false}),
            R"(fraud  runs/a
  status            done
  steps             4
  final loss        2
  best at step      4
  held-out loss     0.5
  auc               0.875
  workers           1 of 2 threads
  samples/s         128
  peak memory       1.5 MiB
  weights           1234
  identity          abcd

  evaluation        loss         auc
           4         0.5       0.875  best

loss
8 +:
  | :
  |  :
  |  '.
  |   '.
  |    :
  |     :
  |      :
  |       ''.
  |          '..
  |             '..
2 +                ''..
  ++------------------+
   1                  4  step
)");
}

TEST_F(RunViewTest, ReportForProgramsIsJson) {
  const RunView run = open_run(make_run("a", 2, "1234"));
  const nlohmann::json report = nlohmann::json::parse(run_report_json(run));
  EXPECT_TRUE(report["finished"]);
  EXPECT_EQ(report["summary"]["weights_sha256"], "1234");
  EXPECT_EQ(report["last_step"]["loss"], 4.0);
  EXPECT_TRUE(report["evaluations"].empty());
}

TEST_F(RunViewTest, EqualRunsAgree) {
  const RunView a = open_run(make_run("a", 4, "1234")), b = open_run(make_run("b", 4, "1234"));
  const RunComparison bits = compare_runs(a, b);
  EXPECT_TRUE(*bits.same_weights);
  EXPECT_TRUE(*bits.same_identity);
  EXPECT_EQ(bits.common_steps, 4);
  EXPECT_FALSE(bits.first_step);
  const std::string report = comparison_report(a, b);
  EXPECT_TRUE(report.ends_with(
      "Weights: the same bits.\nIdentity: equal; equal steps must give equal bits.\nSteps: the 4 that both "
      "have logged agree in every bit of loss and gradient norm.\n"))
      << report;
}

TEST_F(RunViewTest, TheFirstBitThatDiffersIsFound) {
  const std::string first = make_run("a", 4, "1234"), second = make_run("b", 2, "5678");
  {
    MetricsFile metrics(second + "/metrics.jsonl", 2);
    StepRecord record = step(3);
    record.loss = std::nextafter(record.loss, 10);
    metrics.add(record);
  }
  const RunView a = open_run(first), b = open_run(second);
  const RunComparison bits = compare_runs(a, b);
  EXPECT_EQ(bits.common_steps, 3);
  EXPECT_EQ(bits.first_step, 3);
  EXPECT_EQ(bits.values, (std::vector<Difference>{{"loss", "2.6666666666666665", "2.666666666666667"}}));
  EXPECT_NE(comparison_report(a, b).find("this is a bug in Lockstep"), std::string::npos);
}

TEST_F(RunViewTest, IdentitiesAreComparedFieldByField) {
  const std::string second = make_run("b", 1);
  folder_.write("b/identity.json", R"([["train.seed", "8"], ["train.leaves", "16"]])");
  const RunView a = open_run(make_run("a", 1)), b = open_run(second);
  const RunComparison bits = compare_runs(a, b);
  EXPECT_FALSE(bits.same_weights);  // not known
  EXPECT_FALSE(*bits.same_identity);
  EXPECT_EQ(bits.identity,
            (std::vector<Difference>{
                {"train.seed", "7", "8"}, {"model", "tabular", ""}, {"train.leaves", "", "16"}}));
}

TEST_F(RunViewTest, TheTableShowsDifferences) {
  RunView a = open_run(make_run("a", 4, "1234")), b = open_run(make_run("b", 4, "1234"));
  a.folder = "runs/a";
  b.folder = "runs/b";
  b.summary.final_loss = 2.5;
  b.summary.tokens_per_second = 1000;
  b.summary.threads_per_worker = 4;
  const std::string report = comparison_report(a, b);
  EXPECT_EQ(report.substr(0, report.find("\n\n")),
            R"(                  runs/a          runs/b
status            done            done
steps             4               4
final loss        2               2.5             +25.0 %
workers           1 of 2 threads  1 of 4 threads  differs
samples/s         128             128
tokens/s          -               1k
peak memory       1.5 MiB         1.5 MiB
weights           1234            1234
identity          abcd            abcd)");
}

}  // namespace
}  // namespace lockstep
