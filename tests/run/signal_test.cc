// A run that is asked to end: after its step with a checkpoint, at once when asked twice, and alone in its
// folder.
#include <gtest/gtest.h>

#include <csignal>

#include "run/folder_events.h"
#include "run/train_case.h"
#include "train/checkpoint/checkpoint_folder.h"

namespace lockstep {
namespace {

// More steps than any run here gets to do, and none of them due for a checkpoint or an evaluation. With a
// constant learning rate the number of steps is not part of the identity: such a run can be given an end.
const std::vector<std::string> kEndless = {"train.steps=10000000", "train.lr.decay=constant",
                                           "checkpoint.every=", "train.eval.every=5000000"};

std::vector<std::string> with_steps(int64_t steps) {
  return {"train.steps=" + std::to_string(steps), "train.lr.decay=constant",
          "checkpoint.every=", "train.eval.every="};
}

// Starts a run and gives the process once it has written to its metrics `writes` times.
std::unique_ptr<LockstepProcess> start(const TrainCase& job, const std::string& run, int writes,
                                       const std::vector<std::string>& settings) {
  std::filesystem::create_directories(job.output(run));
  FolderEvents events(job.output(run));
  auto process = std::make_unique<LockstepProcess>(job.arguments(run, settings), job.log(run));
  while (writes > 0) {
    const auto event = events.next(*process);
    if (!event) break;
    writes -= event->name == "metrics.jsonl" ? 1 : 0;
  }
  EXPECT_EQ(writes, 0) << "it ended by itself: " << read_file(job.log(run) + ".err");
  return process;
}

void expect_ends_after_the_step(int signal, int code, const std::string& status) {
  const TrainCase job(kGptJob);
  const auto process = start(job, "run", 5, kEndless);
  process->send(signal);
  const Ended ended = process->wait();
  ASSERT_EQ(ended.code, code) << ended.err;

  const RunSummary summary = job.summary("run");
  EXPECT_EQ(summary.status, status);
  EXPECT_EQ(summary.exit_code, code);
  EXPECT_GT(summary.steps, 0);
  EXPECT_EQ(latest_checkpoint(job.output("run"))->step, summary.steps);
  EXPECT_EQ(job.metrics("run").steps.back().step, summary.steps);

  const int64_t steps = summary.steps + 6;
  EXPECT_EQ(job.trained("run", with_steps(steps)).weights_sha256,
            job.trained("whole", with_steps(steps)).weights_sha256);
  expect_same_steps(job.metrics("run"), job.metrics("whole"));
  EXPECT_EQ(job.summary("run").restarts, 1);
}

TEST(Signal, TermEndsAfterTheStepWithACheckpoint) { expect_ends_after_the_step(SIGTERM, 75, "preempted"); }
TEST(Signal, InterruptEndsAfterTheStepWithACheckpoint) {
  expect_ends_after_the_step(SIGINT, 130, "interrupted");
}
// A terminal that is closed, and what schedulers send before they take the machine.
TEST(Signal, HangUpEndsAfterTheStepWithACheckpoint) { expect_ends_after_the_step(SIGHUP, 75, "preempted"); }
TEST(Signal, User1EndsAfterTheStepWithACheckpoint) { expect_ends_after_the_step(SIGUSR1, 75, "preempted"); }
TEST(Signal, User2EndsAfterTheStepWithACheckpoint) { expect_ends_after_the_step(SIGUSR2, 75, "preempted"); }

// A shell whose terminal is closed sends SIGHUP to what it runs, and the kernel may send another: the run is
// still saved.
TEST(Signal, HangUpsOnlyEverAsk) {
  const TrainCase job(kGptJob);
  const auto process =
      start(job, "run", 1, {"train.global_batch=20000", "train.lr.warmup=0", "train.steps=10"});
  for (const int signal : {SIGHUP, SIGUSR1, SIGHUP}) {
    process->send(signal);
    while (process->pending(signal)) continue;
  }
  const Ended ended = process->wait();
  EXPECT_EQ(ended.code, 75) << ended.err;
  EXPECT_EQ(job.summary("run").error, "SIGHUP; a checkpoint was saved");
  EXPECT_TRUE(latest_checkpoint(job.output("run")));
}

TEST(Signal, WhatWasIgnoredStaysIgnored) {
  const TrainCase job(kGptJob);
  std::filesystem::create_directories(job.output("run"));
  FolderEvents events(job.output("run"));
  LockstepProcess process(job.arguments("run", kEndless), job.log("run"), {.ignored = {SIGHUP}});
  for (int writes = 0; writes < 3;) {
    const auto event = events.next(process);
    ASSERT_TRUE(event);
    writes += event->name == "metrics.jsonl" ? 1 : 0;
  }
  process.send(SIGHUP);
  process.send(SIGTERM);
  EXPECT_EQ(process.wait().code, 75);
  EXPECT_EQ(job.summary("run").error, "SIGTERM; a checkpoint was saved");
}

// Code that oneDNN generates keeps other things in the stack pointer: a handler there would write over them.
// While a thread waits for a signal, it alone counts as open to it.
TEST(Signal, NoThreadThatComputesCanBeInterrupted) {
  const TrainCase job(kGptJob);
  const auto process = start(job, "run", 3, kEndless);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2})
    EXPECT_LE(process->threads_open_to(signal), 1);
}

// A step of so many microbatches takes minutes, so the signals fall into it.
TEST(Signal, TheSecondEndsAtOnce) {
  for (const int signal : {SIGTERM, SIGINT}) {
    const TrainCase job(kGptJob);
    const auto process = start(job, "run", 1, {"train.global_batch=20000000", "train.lr.warmup=0"});
    process->send(signal);
    while (process->pending(signal)) continue;  // two that wait would count as one
    process->send(signal);
    const Ended ended = process->wait();
    EXPECT_EQ(ended.signal, signal) << ended.err;
    // The first is acknowledged, the second explained.
    const std::string name = signal == SIGTERM ? "SIGTERM" : "SIGINT";
    for (const std::string& words :
         {name +
              ": the run saves a checkpoint and ends after the step at hand; a second SIGINT or SIGTERM ends "
              "it at once\n",
          name + " again: ends at once; started again, the run goes on from its last checkpoint\n"})
      EXPECT_NE(ended.err.find(words), std::string::npos) << ended.err;
    EXPECT_TRUE(job.metrics("run").steps.empty());
    EXPECT_TRUE(list_checkpoints(job.output("run")).empty());
  }
}

TEST(OneFolder, ASecondProcessIsRefused) {
  const TrainCase job(kGptJob);
  const auto first = start(job, "run", 3, kEndless);
  const std::string elsewhere = "checkpoint.dir=" + job.output("elsewhere");
  for (const std::string& where : {std::string("name=again"), elsewhere}) {
    std::vector<std::string> settings = kEndless;
    settings.push_back(where);
    const Ended second = LockstepProcess(job.arguments("run", settings), job.log("second")).wait();
    EXPECT_EQ(second.code, 2) << second.err;
    EXPECT_NE(second.err.find("another process writes into " + job.output("run")), std::string::npos)
        << second.err;
  }
  first->send(SIGTERM);
  EXPECT_EQ(first->wait().code, 75);
  const int64_t steps = job.summary("run").steps + 2;
  EXPECT_EQ(job.trained("run", with_steps(steps)).weights_sha256,
            job.trained("whole", with_steps(steps)).weights_sha256);
}

}  // namespace
}  // namespace lockstep
