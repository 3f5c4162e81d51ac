// Runs on tables of every task: what they decide and keep, that they learn, and that neither workers nor a
// second start change a bit of it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "run/run_folder.h"
#include "run/train_case.h"

namespace lockstep {
namespace {

constexpr const char* kJob = R"(
name: tasks
model: {family: tabular, dim: 8, rows: 50, bottom: [16], top: [16]}
data: {train: {format: csv, files: unset, label: y}, hold_out: 0.25, seed: 3}
train:
  steps: 60
  global_batch: 32
  microbatch: 8
  lr: {base: 2e-2}
  eval: {every: 20}
strategy: {leaves: 4, threads: 1}
checkpoint: {every: 20, keep: 2}
)";

constexpr int kRows = 400;

// Draws that repeat: two numbers and a category.
int number(int i) { return (i * 7919 + 13) % 101; }
int other(int i) { return (i * 104729 + 7) % 53; }
char category(int i) { return static_cast<char>('a' + i * 31 % 4); }

template <typename Label>
std::string table(const Label& label) {
  std::string text = "x,z,c,y\n";
  for (int i = 0; i < kRows; ++i)
    text += fmt::format("{},{},{},{}\n", number(i), other(i), category(i), label(i));
  return text;
}

std::string colour(int i) { return number(i) > 66 ? "red" : number(i) > 33 ? "green" : "blue"; }
double price(int i) { return 1000 + 20.5 * number(i) - 7.25 * other(i); }
int fraud(int i) { return number(i) > 80 ? 1 : 0; }

using Lines = std::vector<std::vector<std::string>>;

Lines fields_of(const std::string& csv) {
  Lines lines;
  std::istringstream text(csv);
  for (std::string line; std::getline(text, line);) {
    lines.emplace_back();
    std::istringstream fields(line);
    for (std::string field; std::getline(fields, field, ',');) lines.back().push_back(field);
  }
  return lines;
}

class TaskRun : public testing::Test {
 protected:
  std::vector<std::string> on(const std::string& text, std::vector<std::string> settings = {}) const {
    job_.folder().write("t.csv", text);
    settings.push_back("data.train.files=" + job_.folder().path("t.csv"));
    return settings;
  }
  Ended check(const std::vector<std::string>& settings) const {
    std::vector<std::string> arguments = {"check", job_.folder().path("job.yaml")};
    for (const std::string& setting : settings) arguments.insert(arguments.end(), {"--set", setting});
    return lockstep(arguments);
  }
  Ended lockstep(const std::vector<std::string>& arguments) const {
    return LockstepProcess(arguments, job_.log("command")).wait();
  }
  // Of files with labels, or with none named of what the run held out.
  nlohmann::json evaluated(const std::string& run, const std::string& files) const {
    std::vector<std::string> arguments = {"eval", job_.output(run), "--json", "-"};
    if (!files.empty()) arguments.insert(arguments.end(), {"--data", files});
    const Ended ended = lockstep(arguments);
    EXPECT_EQ(ended.code, 0) << ended.err;
    return nlohmann::json::parse(ended.out, nullptr, false);
  }
  // The lines of what is predicted for all records, given without a label.
  Lines predicted(const std::string& run, const std::vector<std::string>& more = {}) const {
    std::string text = "x,z,c\n";
    for (int i = 0; i < kRows; ++i) text += fmt::format("{},{},{}\n", number(i), other(i), category(i));
    job_.folder().write("new.csv", text);
    std::vector<std::string> arguments = {
        "predict", job_.output(run), "--data", job_.folder().path("new.csv"), "--out", "-"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Ended ended = lockstep(arguments);
    EXPECT_EQ(ended.code, 0) << ended.err;
    return fields_of(ended.out);
  }

  TrainCase job_{kJob};
};

void expect_has(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << part << " is not in\n" << text;
}

TEST_F(TaskRun, TextLabelsAreClassesThatAreKept) {
  const std::vector<std::string> settings = on(table(colour), {"train.eval.metric=macro_f1"});
  const RunSummary one = job_.trained("one", settings);
  ASSERT_TRUE(one.final_eval && one.final_eval->accuracy);
  EXPECT_GT(*one.final_eval->accuracy, 0.9);
  EXPECT_GT(*one.final_eval->macro_f1, 0.9);
  EXPECT_LT(*one.final_eval->log_loss, 0.4);
  EXPECT_FALSE(one.final_eval->auc);
  for (const char* folder : {"one", "one/checkpoint-60"}) {
    const LabelEncoding labels = read_labels(job_.output(folder));
    EXPECT_EQ(labels.task, LabelTask::kClassification);
    EXPECT_EQ(labels.classes, (std::vector<std::string>{"blue", "green", "red"}));
  }
  expect_has(job_.text("one", "job.yaml"), "task: classification");
  const RunSummary two =
      job_.trained("two", on(table(colour), {"train.eval.metric=macro_f1", "strategy.workers=2"}));
  EXPECT_EQ(two.weights_sha256, one.weights_sha256);
  EXPECT_EQ(two.identity_sha256, one.identity_sha256);
  expect_same_evaluations(job_.metrics("two"), job_.metrics("one"));
}

TEST_F(TaskRun, NumbersAreLearntInTheirOwnUnits) {
  const RunSummary run = job_.trained("run", on(table(price), {"train.eval.metric=r2"}));
  ASSERT_TRUE(run.final_eval && run.final_eval->r2);
  EXPECT_GT(*run.final_eval->r2, 0.9);
  // The labels spread over some hundreds; the loss is that of standardised ones.
  EXPECT_GT(*run.final_eval->rmse, 5);
  EXPECT_LT(*run.final_eval->rmse, 200);
  EXPECT_LE(*run.final_eval->mae, *run.final_eval->rmse);
  EXPECT_LT(run.final_eval->loss, 0.1);
  const LabelEncoding labels = read_labels(job_.output("run"));
  EXPECT_EQ(labels.task, LabelTask::kRegression);
  EXPECT_NEAR(*run.final_eval->rmse, labels.deviation * std::sqrt(run.final_eval->loss),
              1e-4 * *run.final_eval->rmse);
}

TEST_F(TaskRun, WhatIsDecidedIsPrintedAndHolds) {
  const std::vector<std::string> settings = on(table(colour));
  const Ended checked = check(settings);
  EXPECT_EQ(checked.code, 0) << checked.err;
  const std::string decision = "y: classification of 3 classes, by its 3 different texts: blue, green, red";
  expect_has(checked.out, "# label " + decision);
  expect_has(checked.out, "task: classification");
  const Ended trained = job_.train("run", settings);
  EXPECT_EQ(trained.code, 0) << trained.err;
  expect_has(trained.err, "label      " + decision);
  // The job that is kept says the task itself, which is the same job.
  expect_has(job_.text("run", "job.yaml"), "task: classification");
  const Ended again = job_.train("again", on(table(colour), {"model.task=classification"}));
  EXPECT_EQ(again.code, 0) << again.err;
  expect_has(again.err, "label      y: classification of 3 classes, as model.task says");
  EXPECT_EQ(job_.summary("again").identity_sha256, job_.summary("run").identity_sha256);
  EXPECT_EQ(job_.summary("again").weights_sha256, job_.summary("run").weights_sha256);
}

TEST_F(TaskRun, ATaskMayBeAskedFor) {
  const auto five = [](int i) { return number(i) / 21; };
  EXPECT_TRUE(job_.trained("auto", on(table(five), {"train.steps=4"})).final_eval->macro_f1);
  const RunSummary asked = job_.trained("asked", on(table(five), {"train.steps=4", "model.task=regression"}));
  EXPECT_TRUE(asked.final_eval->r2);
  const Ended refused = job_.train("refused", on(table(five), {"model.task=binary"}));
  EXPECT_EQ(refused.code, 2);
  expect_has(refused.err, "the label 'y' has 5 different values (0, 1, 2, 3, 4), and model.task is binary");
  const Ended metric = job_.train("metric", on(table(price), {"train.eval.metric=auc"}));
  EXPECT_EQ(metric.code, 2);
  expect_has(metric.err, "this model is not evaluated by auc; use loss, mae, rmse, r2");
}

TEST_F(TaskRun, OneClassLeavesTheAucUndefinedAndTheRunGoesOn) {
  const auto only_trained = [](int i) { return i < kRows * 3 / 4 ? fraud(i) : 0; };
  const Ended ended =
      job_.train("run", on(table(only_trained),
                           {"train.eval.metric=auc", "train.eval.every=5", "train.early_stop.patience=2"}));
  EXPECT_EQ(ended.code, 0) << ended.err;
  const RunSummary summary = job_.summary("run");
  EXPECT_EQ(summary.status, "done") << "what cannot be measured ends no run";
  EXPECT_EQ(summary.steps, 60);
  expect_has(ended.err, "auc undefined");
  expect_has(ended.err, "auc is undefined on the records that are held out");
  const auto json = nlohmann::json::parse(job_.text("run", "summary.json"));
  EXPECT_TRUE(json["final_eval"]["auc"].is_null());
  EXPECT_TRUE(json["final_eval"]["accuracy"].is_number());
  // A resumed run reads that again.
  EXPECT_EQ(job_.train("run", on(table(only_trained), {"train.eval.metric=auc", "train.eval.every=5",
                                                       "train.early_stop.patience=2"}))
                .code,
            0);
}

TEST_F(TaskRun, OneClassToTrainOnIsAWarning) {
  const Ended ended = job_.train("run", on(table([](int) { return 0; }), {"train.steps=4"}));
  EXPECT_EQ(ended.code, 0) << ended.err;
  expect_has(ended.err, "every training record has the label 0 in 'y': there is nothing to learn");
}

TEST_F(TaskRun, NumbersAloneAndCategoriesAloneTrain) {
  const RunSummary numbers =
      job_.trained("numbers", on(table(price), {"data.train.columns.ignore=c", "train.eval.metric=r2"}));
  EXPECT_GT(*numbers.final_eval->r2, 0.9);
  const auto by_category = [](int i) { return category(i) == 'b' || category(i) == 'd' ? "yes" : "no"; };
  for (const char* ignored : {"[x, z]", "[x]"}) {
    const RunSummary categories =
        job_.trained(ignored, on(table(by_category), {std::string("data.train.columns.ignore=") + ignored}));
    EXPECT_GT(*categories.final_eval->accuracy, 0.95) << ignored;
  }
}

TEST_F(TaskRun, WeightsMoveWhatIsLearnt) {
  // Of equal records half say yes and half say no, so only what they count decides.
  std::string text = "x,w,y\n";
  for (int i = 0; i < kRows; ++i) text += fmt::format("{},{},{}\n", i / 2 % 7, i % 2 == 0 ? 9 : 1, i % 2);
  const RunSummary alike = job_.trained("alike", on(text, {"data.train.columns.ignore=w"}));
  const RunSummary weighted = job_.trained("weighted", on(text, {"data.weight=w"}));
  EXPECT_NEAR(alike.final_eval->loss, std::log(2.0), 0.02);
  // Records that say no count nine times as much: the model says yes with probability 0.1.
  EXPECT_NEAR(*weighted.final_eval->log_loss, -0.5 * (std::log(0.9) + std::log(0.1)), 0.1);
  EXPECT_EQ(weighted.final_eval->samples, 100) << "evaluation counts all alike";
  EXPECT_NE(weighted.identity_sha256, alike.identity_sha256);
  const RunSummary classes =
      job_.trained("classes", on(text, {"data.train.columns.ignore=w", "train.class_weights={0: 9, 1: 1}"}));
  EXPECT_EQ(classes.weights_sha256, weighted.weights_sha256) << "both weigh these records alike";
  EXPECT_NE(classes.identity_sha256, alike.identity_sha256);
  const RunSummary two = job_.trained("two", on(text, {"data.weight=w", "strategy.workers=2"}));
  EXPECT_EQ(two.weights_sha256, weighted.weights_sha256);
}

TEST_F(TaskRun, BalancedWeightsOfClassesHelpTheRareOne) {
  const auto rare = [](int i) { return number(i) > 90 ? "rare" : number(i) > 45 ? "more" : "most"; };
  for (const char* precision : {"fp32", "bf16"}) {
    const std::string name = precision;
    const RunSummary run =
        job_.trained(name, on(table(rare), {"train.class_weights=balanced", "train.precision=" + name}));
    EXPECT_GT(*run.final_eval->macro_f1, 0.8) << name;
    EXPECT_EQ(read_labels(job_.output(name)).weights.size(), 3u);
  }
}

TEST_F(TaskRun, ClassesAreAnsweredByTheirNames) {
  job_.trained("run", on(table(colour), {"train.eval.metric=macro_f1", "train.class_weights=balanced"}));
  const auto judged = evaluated("run", job_.folder().path("t.csv"));
  EXPECT_EQ(judged["classes"].dump(), R"(["blue","green","red"])");
  EXPECT_GT(judged["metrics"]["accuracy"].get<double>(), 0.9);
  const Lines rows = predicted("run");
  EXPECT_EQ(rows[0], (std::vector<std::string>{"x", "z", "c", "class", "probability", "probability.blue",
                                               "probability.green", "probability.red"}));
  int right = 0;
  for (int i = 0; i < kRows; ++i) {
    const auto& row = rows.at(static_cast<size_t>(i) + 1);
    right += row.at(3) == colour(i) ? 1 : 0;
    EXPECT_EQ(row[4], row[row[3] == "blue" ? 5 : row[3] == "green" ? 6 : 7]);
    EXPECT_NEAR(std::stod(row[5]) + std::stod(row[6]) + std::stod(row[7]), 1, 1e-12);
  }
  EXPECT_DOUBLE_EQ(judged["metrics"]["accuracy"].get<double>(), right / static_cast<double>(kRows));
  // A class that the model has no answer for is named before anything is computed.
  job_.folder().write("other.csv", "x,z,c,y\n1,2,a,mauve\n");
  const Ended refused = lockstep({"eval", job_.output("run"), "--data", job_.folder().path("other.csv")});
  EXPECT_EQ(refused.code, 2);
  expect_has(refused.err, "other.csv:2: the label 'y' is 'mauve'; it must be one that training records have");
}

TEST_F(TaskRun, NumbersAreAnsweredInTheirOwnUnits) {
  const RunSummary run = job_.trained("run", on(table(price)));
  const auto held_out = evaluated("run", "");
  EXPECT_EQ(held_out["metrics"]["rmse"].get<double>(), *run.final_eval->rmse);
  const auto judged = evaluated("run", job_.folder().path("t.csv"));
  const Lines rows = predicted("run");
  EXPECT_EQ(rows[0], (std::vector<std::string>{"x", "z", "c", "value"}));
  double squares = 0;
  for (int i = 0; i < kRows; ++i)
    squares += std::pow(std::stod(rows.at(static_cast<size_t>(i) + 1).at(3)) - price(i), 2);
  EXPECT_NEAR(std::sqrt(squares / kRows), judged["metrics"]["rmse"].get<double>(), 1e-3);
  const Ended refused = lockstep({"predict", job_.output("run"), "--data", job_.folder().path("t.csv"),
                                  "--out", "-", "--threshold", "0.5"});
  EXPECT_EQ(refused.code, 2);
  expect_has(refused.err, "a threshold is for models that answer yes or no");
}

TEST_F(TaskRun, TwoTextsAreDecidedByTheirNamesAndNeedNoWeights) {
  const auto cheap = [](int i) { return number(i) > 50 ? "no" : "yes"; };
  const std::string labelled = table(cheap);
  std::string weighted = table([&](int i) { return fmt::format("{},{}", cheap(i), 1 + i % 3); });
  weighted.replace(0, weighted.find('\n'), "x,z,c,y,w");
  job_.trained("run", on(weighted, {"data.weight=w"}));
  const Lines rows = predicted("run", {"--threshold", "0.5"});
  EXPECT_EQ(rows[0], (std::vector<std::string>{"x", "z", "c", "probability", "decision"}));
  int right = 0;
  for (int i = 0; i < kRows; ++i) {
    const auto& row = rows.at(static_cast<size_t>(i) + 1);
    EXPECT_EQ(row.at(4), std::stod(row.at(3)) >= 0.5 ? "yes" : "no");
    right += row[4] == cheap(i) ? 1 : 0;
  }
  EXPECT_GT(right, kRows * 0.9);
  // Other files have labels, and no weights.
  job_.folder().write("labelled.csv", labelled);
  const auto judged = evaluated("run", job_.folder().path("labelled.csv"));
  EXPECT_DOUBLE_EQ(judged["metrics"]["accuracy"].get<double>(), right / static_cast<double>(kRows));
  EXPECT_EQ(judged["classes"].dump(), R"(["no","yes"])");
}

TEST_F(TaskRun, BadLabelsAreFoundBeforeTheFirstStepOrSkipped) {
  const auto label = [](int i) { return i == 390 ? "maybe" : std::to_string(fraud(i)); };
  const Ended stopped = job_.train("stop", on(table(label)));
  EXPECT_EQ(stopped.code, 2);
  EXPECT_FALSE(job_.has("stop", "metrics.jsonl"));
  expect_has(stopped.err, "t.csv:392: the label 'y' is 'maybe'; it must be 0 or 1");
  const Ended skipped =
      job_.train("skip", on(table(label), {"data.errors.policy=skip", "data.errors.limit=0.01"}));
  EXPECT_EQ(skipped.code, 0) << skipped.err;
  expect_has(skipped.err, "1 of 400 records are left out; the first: ");
  EXPECT_EQ(job_.summary("skip").final_eval->samples, 99);
}

TEST_F(TaskRun, LabelsOfTextAreFoundBeforeTheFirstStepToo) {
  const TrainCase text(R"(
name: text
model: {family: encoder, layers: 1, dim: 16, heads: 2, vocab: 260, seq: 8, classes: 3}
data: {train: {format: csv, files: unset, text: subject, label: kind}, hold_out: 0.2, seed: 3}
train: {steps: 2, global_batch: 8, microbatch: 4, lr: {base: 1e-2}}
strategy: {leaves: 2, threads: 1}
)");
  std::string lines = "subject,kind\n";
  for (int i = 0; i < 100; ++i) lines += fmt::format("s{},{}\n", i, i == 95 ? 3 : i % 3);
  text.folder().write("t.csv", lines);
  const std::string files = "data.train.files=" + text.folder().path("t.csv");
  const Ended stopped = text.train("stop", {files});
  EXPECT_EQ(stopped.code, 2);
  expect_has(stopped.err, "t.csv:97: the label 'kind' is '3'; it must be a whole number below 3");
  EXPECT_EQ(text.trained("skip", {files, "data.errors.policy=skip", "data.errors.limit=0.1"}).status, "done");
}

}  // namespace
}  // namespace lockstep
