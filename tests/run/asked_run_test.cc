// What is asked is what is done: check and train agree, a run that cannot go on or has nothing left to do
// says so and touches nothing, and what was trained is there when an evaluation fails.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <csignal>
#include <fstream>
#include <map>

#include "run/folder_events.h"
#include "run/train_case.h"
#include "run/worker_processes.h"
#include "train/checkpoint/checkpoint_folder.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using Settings = std::vector<std::string>;

Ended checked(const TrainCase& job, const std::string& run, const Settings& settings) {
  std::vector<std::string> arguments = job.arguments(run, settings);
  arguments[0] = "check";
  return LockstepProcess(arguments, job.log(run + "-check")).wait();
}

// The line that says what is wrong, without what was printed before it.
std::string complaint(const Ended& ended) {
  const size_t at = ended.err.find("lockstep: ");
  return at == std::string::npos ? "" : ended.err.substr(at);
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

// Every file below a folder: its bytes, and when it was written.
std::map<std::string, std::pair<std::string, fs::file_time_type>> state_of(const std::string& folder) {
  std::map<std::string, std::pair<std::string, fs::file_time_type>> state;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    state[entry.path()] = {entry.is_regular_file() ? read_file(entry.path()) : "",
                           fs::last_write_time(entry)};
  return state;
}

const Settings kConstant = {"train.lr.decay=constant"};

Settings with(Settings settings, const Settings& more) {
  settings.insert(settings.end(), more.begin(), more.end());
  return settings;
}

TEST(CheckAndTrain, RefuseTheSameJobsInTheSameWords) {
  const TrainCase job(kGptJob);
  job.folder().write("file", "not a folder");
  job.folder().write("own/job.yaml", "mine: true\n");
  job.trained("done", kConstant);
  const std::vector<std::pair<std::string, Settings>> refused = {
      {"a", {"train.eval.metric=auc"}},
      {"a", {"train.early_stop.metric=f1", "train.early_stop.patience=1"}},
      {"a", {"data.eval.samples="}},
      {"a", {"data.hold_out=0.1"}},
      {"a", {"data.eval.format=text", "data.eval.files=x"}},
      {"a", {"strategy.workers=3", "strategy.leaves=2"}},
      {"a", {"output=gs://bucket/run"}},
      {"a", {"checkpoint.dir=$LOCKSTEP_NOWHERE/x"}},
      {"a", {"strategy.memory=4MiB"}},
      {"file", {}},
      {"file/run", {}},
      {"own", {}},
      {"done", with(kConstant, {"train.steps=20"})},
      {"done", with(kConstant, {"train.seed=6"})},
      {"done", with(kConstant, {"train.steps=20", "strategy.workers=2"})},
      {"a", {"train.eval.metric=auc", "strategy.workers=2"}},
  };
  for (const auto& [run, settings] : refused) {
    const Ended check = checked(job, run, settings), train = job.train(run, settings);
    EXPECT_NE(train.code, 0) << settings.size();
    EXPECT_EQ(check.code, train.code) << train.err;
    // Of several workers, one of them says it.
    EXPECT_NE(train.err.find(first_line(complaint(check))), std::string::npos) << check.err << train.err;
  }
}

TEST(CheckAndTrain, SayWhereARunWouldGoOn) {
  const TrainCase job(kGptJob);
  job.trained("run", with(kConstant, {"train.steps=6"}));
  const auto before = state_of(job.output("run"));
  const Ended more = checked(job, "run", with(kConstant, {"train.steps=9"}));
  EXPECT_EQ(more.code, 0) << more.err;
  EXPECT_NE(more.out.find("# goes on after step 6"), std::string::npos) << more.out;
  const Ended done = checked(job, "run", with(kConstant, {"train.steps=6"}));
  EXPECT_NE(done.out.find("is finished: done after 6 steps"), std::string::npos) << done.out;
  EXPECT_EQ(state_of(job.output("run")), before);
}

TEST(AskedRun, StepsOnTheCommandLineReplaceEpochsOfTheFile) {
  const TrainCase job(kGptJob);
  const std::string text = read_file(job.folder().path("job.yaml"));
  job.folder().write("job.yaml", std::string(text).replace(text.find("steps: 30"), 9, "epochs: 1"));
  const Ended ended = job.train("run", {"train.steps=12"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_NE(ended.err.find("train.epochs 1 is replaced by --set train.steps"), std::string::npos)
      << ended.err;
  EXPECT_EQ(job.summary("run").steps, 12);
}

TEST(AskedRun, PathsAreNeverMadeIntoFoldersAsTheyAreWritten) {
  const TrainCase job(kGptJob);
  const std::string here = job.folder().path("here");
  fs::create_directories(here);
  const auto run_in = [&](const std::string& output) {
    const std::string variables = "HOME=" + here + " SCRATCH=" + here + "/scratch ";
    return ChildProcess({"/bin/sh", "-c",
                         "cd " + here + " && " + variables + LOCKSTEP_PROGRAM + " train ../job.yaml --set '" +
                             output + "'"},
                        job.log("shell"))
        .wait();
  };
  EXPECT_EQ(run_in("output=gs://bucket/run").code, 2);
  EXPECT_EQ(run_in("output=s3://bucket/run").code, 2);
  EXPECT_EQ(run_in("output=$LOCKSTEP_NOWHERE/run").code, 2);
  EXPECT_TRUE(fs::is_empty(here));
  EXPECT_EQ(run_in("output=~/home-run").code, 0);
  EXPECT_EQ(run_in("output=$SCRATCH/run").code, 0);
  EXPECT_TRUE(fs::exists(here + "/home-run/summary.json"));
  EXPECT_TRUE(fs::exists(here + "/scratch/run/summary.json"));
}

TEST(AskedRun, AcceleratorsThatAreNotThereAreMissed) {
  const TrainCase job(
      std::string(kGptJob) +
      "workerPoolSpecs: [{machineSpec: {machineType: a2, acceleratorType: NVIDIA_L4, "
      "acceleratorCount: 2}, replicaCount: 1}, {machineSpec: {machineType: a2, acceleratorType: "
      "NVIDIA_L4, acceleratorCount: 2}, replicaCount: 1}]\n");
  for (const Ended& ended : {checked(job, "run", {}), job.train("run")}) {
    EXPECT_EQ(ended.code, 5) << ended.err;
    EXPECT_NE(ended.err.find("workerPoolSpecs[0] asks for 2 NVIDIA_L4 a machine"), std::string::npos)
        << ended.err;
    EXPECT_NE(ended.err.find("--set device=cpu"), std::string::npos) << ended.err;
  }
  EXPECT_FALSE(fs::exists(job.output("run")));
  EXPECT_EQ(job.trained("run", {"device=cpu"}).workers, 2);
}

TEST(AskedRun, FewerStepsThanTheCheckpointHasAreRefused) {
  const TrainCase job(kGptJob);
  job.trained("run", kConstant);
  const auto before = state_of(job.output("run"));
  const Ended ended = job.train("run", with(kConstant, {"train.steps=20"}));
  EXPECT_EQ(ended.code, 2);
  EXPECT_NE(ended.err.find("the job asks for 20 steps, and " + job.output("run") +
                           "/checkpoint-30 has made 30; ask for 30 or more"),
            std::string::npos)
      << ended.err;
  EXPECT_EQ(state_of(job.output("run")), before);
}

TEST(AskedRun, AFinishedRunSaysSoAndIsLeftAsItIs) {
  const TrainCase job(kGptJob);
  for (const Settings& settings : {Settings{}, Settings{"strategy.workers=2", "strategy.leaves=4"}}) {
    const std::string run = "run" + std::to_string(settings.size());
    const RunSummary first = job.trained(run, settings);
    const auto before = state_of(job.output(run));
    const Ended again = job.train(run, settings);
    EXPECT_EQ(again.code, 0) << again.err;
    EXPECT_NE(again.err.find(job.output(run) + " is finished: done after 30 steps"), std::string::npos)
        << again.err;
    EXPECT_EQ(again.out, "done " + first.weights_sha256 + "\n");
    EXPECT_EQ(state_of(job.output(run)), before);
  }
  // Without its summary it is finished again.
  fs::remove(job.output("run0") + "/summary.json");
  EXPECT_EQ(job.trained("run0").status, "done");
}

TEST(AskedRun, TablesOfAnotherFormatAreEvaluatedOn) {
  const TrainCase job(R"(
name: tables
model: {family: tabular, dim: 4, rows: 50, bottom: [8], top: [8]}
data: {train: {format: csv, files: unset, label: y}, eval: {files: unset}, seed: 3}
train: {steps: 6, global_batch: 16, microbatch: 4, lr: {base: 1e-2}}
)");
  std::string csv = "a,b,y\n", jsonl;
  for (int i = 0; i < 200; ++i) {
    csv += fmt::format("{},k{},{}\n", i % 17, i * 3 % 29, i % 2);
    jsonl += fmt::format(R"({{"a": {}, "b": "k{}", "y": {}}})", i % 17, i * 3 % 29, i % 2) + "\n";
  }
  job.folder().write("train.csv", csv);
  job.folder().write("eval.csv", csv);
  job.folder().write("eval.jsonl", jsonl);
  const std::string train = "data.train.files=" + job.folder().path("train.csv");
  const RunSummary same = job.trained("same", {train, "data.eval.files=" + job.folder().path("eval.csv")});
  const RunSummary other = job.trained(
      "other", {train, "data.eval.format=jsonl", "data.eval.files=" + job.folder().path("eval.jsonl")});
  ASSERT_TRUE(same.final_eval && other.final_eval);
  EXPECT_EQ(other.final_eval->samples, 200);
  EXPECT_EQ(other.final_eval->loss, same.final_eval->loss);
  EXPECT_EQ(other.weights_sha256, same.weights_sha256);
  // Another label is refused: it was read, and the training label was used.
  const Ended label =
      job.train("label", {train, "data.eval.files=" + job.folder().path("eval.csv"), "data.eval.label=a"});
  EXPECT_EQ(label.code, 2);
  EXPECT_NE(label.err.find("data.eval.label is a, and data.train.label is y"), std::string::npos)
      << label.err;
}

// A process that dies in the middle of an evaluation has its checkpoint already; started again it evaluates.
TEST(AskedRun, ACheckpointDoesNotWaitForTheEvaluationOfItsStep) {
  const TrainCase job(kGptJob);
  const Settings settings = {"train.steps=2", "train.lr.warmup=0", "train.eval.every=2", "checkpoint.every=2",
                             "data.eval.samples=10000"};
  FolderEvents events(folder_of(job, "cut"));
  LockstepProcess process(job.arguments("cut", settings), job.log("cut"));
  for (bool saved = false; !saved;) {
    const auto event = events.next(process);
    ASSERT_TRUE(event) << "it ended before its checkpoint was seen";
    saved = event->name == "checkpoint-2" && !event->created;
  }
  process.send(SIGKILL);
  process.wait();
  EXPECT_TRUE(job.metrics("cut").evaluations.empty());
  const RunSummary again = job.trained("cut", settings), whole = job.trained("whole", settings);
  EXPECT_EQ(again.weights_sha256, whole.weights_sha256);
  expect_same_evaluations(job.metrics("cut"), job.metrics("whole"));
  EXPECT_EQ(best_checkpoint(job.output("cut"))->step, 2);
}

// The file to evaluate on loses its records while the run trains.
TEST(AskedRun, ACheckpointIsWrittenBeforeAnEvaluationFailsTheRun) {
  const TrainCase job(R"(
name: lost
model: {family: tabular, dim: 4, rows: 50, bottom: [8], top: [8]}
data: {train: {format: csv, files: unset, label: y}, eval: {files: unset}, seed: 3}
train: {steps: 2000, global_batch: 16, microbatch: 4, lr: {base: 1e-2}}
strategy: {threads: 1}
)");
  std::string csv = "a,b,y\n";
  for (int i = 0; i < 400; ++i) csv += fmt::format("{},k{},{}\n", i % 17, i * 3 % 29, i % 2);
  job.folder().write("train.csv", csv);
  job.folder().write("eval.csv", csv);
  const Settings files = {"data.train.files=" + job.folder().path("train.csv"),
                          "data.eval.files=" + job.folder().path("eval.csv")};
  FolderEvents events(folder_of(job, "run"));
  LockstepProcess process(job.arguments("run", files), job.log("run"));
  wait_for_metrics(events, process);
  process.send(SIGSTOP);
  ASSERT_LT(job.metrics("run").steps.back().step, 2000);
  fs::resize_file(job.folder().path("eval.csv"), 20);
  process.send(SIGCONT);
  const Ended ended = process.wait();
  EXPECT_EQ(ended.code, 1) << ended.err;
  EXPECT_NE(ended.err.find("the evaluation after step 2000 failed (a checkpoint was saved before): "),
            std::string::npos)
      << ended.err;
  EXPECT_EQ(job.summary("run").status, "failed");
  ASSERT_TRUE(latest_checkpoint(job.output("run")));
  EXPECT_EQ(latest_checkpoint(job.output("run"))->step, 2000);
  // With its records back, the run has only to be evaluated.
  job.folder().write("eval.csv", csv);
  const RunSummary mended = job.trained("run", files);
  EXPECT_EQ(mended.steps, 2000);
  EXPECT_TRUE(mended.final_eval);
}

}  // namespace
}  // namespace lockstep
