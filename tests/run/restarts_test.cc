// Workers that crash are started again, as often as is asked for, and go on from the newest checkpoint; every
// start of a run is counted.
#include <gtest/gtest.h>

#include <csignal>

#include "run/worker_processes.h"
#include "train/checkpoint/checkpoint_folder.h"

namespace lockstep {
namespace {

using Settings = std::vector<std::string>;

Settings settings(int64_t workers, int64_t steps) {
  return {"train.steps=" + std::to_string(steps),
          "train.lr.decay=constant",
          "train.eval.every=",
          "checkpoint.every=50",
          "strategy.leaves=4",
          "strategy.threads=1",
          "strategy.workers=" + std::to_string(workers)};
}

// Returns when a start of the run has written its first checkpoint.
void wait_for_checkpoint(FolderEvents& events, const LockstepProcess& process) {
  for (bool started = false;;) {
    const auto event = events.next(process);
    if (!event) return ADD_FAILURE() << "it ended before it had a checkpoint", void();
    started = started || event->name == "starts.jsonl";
    const bool complete =
        event->name.starts_with("checkpoint-") && event->name.find(".tmp-") == std::string::npos;
    if (started && complete && !event->created) return;
  }
}

int64_t count(const std::string& text, const std::string& part) {
  int64_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

// Kills worker `rank` as often as asked, each time after a checkpoint of that start.
Ended killed(const TrainCase& job, const std::string& run, const Settings& settings, int restarts,
             int64_t rank, int kills) {
  FolderEvents events(folder_of(job, run));
  LockstepProcess launcher(job.arguments(run, settings, {"--max-restarts", std::to_string(restarts)}),
                           job.log(run));
  for (int i = 0; i < kills; ++i) {
    wait_for_checkpoint(events, launcher);
    ::kill(workers_of(launcher.pid()).at(rank), SIGKILL);
  }
  return launcher.wait();
}

TEST(Restarts, AfterACrashTheWorkersGoOnToTheSameBits) {
  const TrainCase job(kGptJob);
  const Ended ended = killed(job, "run", settings(3, 800), 3, 1, 1);
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_NE(ended.err.find("lockstep: worker-1 failed first: killed by SIGKILL (Killed)"), std::string::npos);
  EXPECT_NE(ended.err.find("the workers are started again, for the 1st of at most 3 times"),
            std::string::npos)
      << ended.err;
  EXPECT_NE(ended.err.find("resuming after step "), std::string::npos) << ended.err;
  EXPECT_EQ(job.summary("run").restarts, 1);
  EXPECT_EQ(job.summary("run").weights_sha256, job.trained("whole", settings(1, 800)).weights_sha256);
}

TEST(Restarts, OneWorkerIsWatchedOverToo) {
  const TrainCase job(kGptJob);
  const Ended ended = killed(job, "run", settings(1, 800), 1, 0, 1);
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(job.summary("run").restarts, 1);
  EXPECT_EQ(job.summary("run").weights_sha256, job.trained("whole", settings(1, 800)).weights_sha256);
}

TEST(Restarts, OnlySoOftenAsIsAskedFor) {
  const TrainCase job(kGptJob);
  const Ended ended = killed(job, "run", settings(2, 10000000), 1, 1, 2);
  EXPECT_EQ(ended.code, 1);
  EXPECT_EQ(count(ended.err, "the workers are started again"), 1) << ended.err;
  EXPECT_EQ(count(ended.err, "worker-1 failed first"), 2) << ended.err;
}

// A verdict on the job would be the same again, and who is asked to end does not want another start.
TEST(Restarts, WhatIsNoCrashIsNotStartedAgain) {
  const TrainCase job(kGptJob);
  const Ended bad =
      job.train("bad", {"train.eval.metric=auc", "strategy.workers=2"}, {"--max-restarts", "3"});
  EXPECT_EQ(bad.code, 2) << bad.err;
  EXPECT_EQ(count(bad.err, "started again"), 0) << bad.err;
  FolderEvents events(folder_of(job, "asked"));
  LockstepProcess launcher(job.arguments("asked", settings(2, 10000000), {"--max-restarts", "3"}),
                           job.log("asked"));
  wait_for_metrics(events, launcher);
  launcher.send(SIGTERM);
  const Ended asked = launcher.wait();
  EXPECT_EQ(asked.code, 75) << asked.err;
  EXPECT_EQ(count(asked.err, "started again, for the"), 0) << asked.err;
}

TEST(Restarts, AreForOneHostAndForWorkersOfItsOwn) {
  const TrainCase job(kGptJob);
  const Ended hosts =
      LockstepProcess(job.arguments("run", {},
                                    {"--max-restarts", "1", "--nnodes", "2", "--node-rank", "0",
                                     "--master-addr", "127.0.0.1"}),
                      job.log("run"), {.environment = {"LOCKSTEP_TOKEN=0123456789abcdef0123"}})
          .wait();
  EXPECT_EQ(hosts.code, 2) << hosts.err;
  EXPECT_NE(hosts.err.find("--max-restarts starts the workers of one host again"), std::string::npos)
      << hosts.err;
  const Ended other = LockstepProcess(job.arguments("run", {}, {"--max-restarts", "1"}), job.log("run"),
                                      {.environment = {"RANK=0", "WORLD_SIZE=1"}})
                          .wait();
  EXPECT_EQ(other.code, 2) << other.err;
  EXPECT_NE(other.err.find("torchrun has started this one"), std::string::npos) << other.err;
}

// `--fresh` is for the first start only: otherwise every restart would begin again at step 0.
TEST(Restarts, FreshHoldsForTheFirstStartOnly) {
  const TrainCase job(kGptJob);
  job.trained("run", settings(1, 20));
  FolderEvents events(job.output("run"));
  LockstepProcess launcher(job.arguments("run", settings(1, 800), {"--max-restarts", "1", "--fresh"}),
                           job.log("run"));
  wait_for_checkpoint(events, launcher);
  ::kill(workers_of(launcher.pid()).at(0), SIGKILL);
  const Ended ended = launcher.wait();
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(count(ended.err, "resuming after step "), 1) << ended.err;
}

// Also those that did not come as far as another checkpoint.
TEST(Restarts, EveryOneIsCounted) {
  const TrainCase job(kGptJob);
  const Settings endless = {"train.steps=10000000", "train.lr.decay=constant",
                            "train.eval.every=", "checkpoint.every="};
  for (int start = 0; start < 3; ++start) {
    FolderEvents events(folder_of(job, "run"));
    LockstepProcess process(job.arguments("run", endless), job.log("run"));
    wait_for_metrics(events, process);
    process.send(SIGKILL);
    process.wait();
  }
  const Settings end = {"train.steps=10", "train.lr.decay=constant",
                        "train.eval.every=", "checkpoint.every="};
  EXPECT_EQ(job.trained("run", end).restarts, 3);
  EXPECT_EQ(count(job.text("run", "starts.jsonl"), "\n"), 4);
  EXPECT_EQ(job.trained("run", end, {"--fresh"}).restarts, 0);
  EXPECT_EQ(count(job.text("run", "starts.jsonl"), "\n"), 1);
}

}  // namespace
}  // namespace lockstep
