// One of several worker processes fails in the middle of training, in every way that a process can: the run
// ends, names it and what it last did, has the right exit code and leaves nothing running; started again it
// reaches the bits of an undisturbed run.
#include <fcntl.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstring>

#include "launch/launcher.h"
#include "run/control_group.h"
#include "run/worker_processes.h"

namespace lockstep {
namespace {

using Settings = std::vector<std::string>;

// A sanitizer takes crashes for itself, and several times the memory.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

// A constant rate lets a run go on to another number of steps.
Settings settings(int64_t steps, const Settings& more = {}) {
  Settings all = {"train.steps=" + std::to_string(steps),
                  "train.lr.decay=constant",
                  "train.eval.every=",
                  "checkpoint.every=20",
                  "strategy.leaves=4",
                  "strategy.threads=1"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}
Settings endless(const Settings& more = {}) {
  Settings all = settings(10000000, more);
  all.emplace_back("strategy.workers=3");
  return all;
}

void expect_has(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "no '" << part << "' in:\n" << text;
}

void expect_killed(int64_t rank, int signal, const std::string& words) {
  const TrainCase job(kGptJob);
  WorkersInTraining run(job, "run", endless());
  run.send(rank, signal);
  const Ended ended = run.wait();
  EXPECT_EQ(ended.code, 1);
  expect_has(ended.err, "lockstep: worker-" + std::to_string(rank) + " failed first: " + words);
  // The others say what they were in, and what it was in.
  const int64_t other = rank == 0 ? 1 : 0;
  const std::string died = "rank " + std::to_string(rank) + " (pid ";
  expect_has(job.text("run", "logs/worker-" + std::to_string(other) + ".log"), died);
  expect_has(ended.err, "has died; before that, rank " + std::to_string(rank));
  if (rank != 0) {
    EXPECT_EQ(job.summary("run").status, "failed");
    EXPECT_EQ(job.summary("run").exit_code, 1);
  }
}

TEST(WorkerFaults, AKilledWorkerIsNamed) { expect_killed(1, SIGKILL, "killed by SIGKILL (Killed)"); }
TEST(WorkerFaults, AKilledLeaderIsNamed) { expect_killed(0, SIGKILL, "killed by SIGKILL (Killed)"); }
TEST(WorkerFaults, ACrashedWorkerIsNamed) {
  if (kSanitized) GTEST_SKIP() << "the sanitizer takes the signal";
  expect_killed(2, SIGSEGV, "killed by SIGSEGV (Segmentation fault)");
}

void expect_stopped_is_found(int64_t rank) {
  const TrainCase job(kGptJob);
  WorkersInTraining run(job, "run", endless({"strategy.deadline=1"}));
  run.send(rank, SIGSTOP);
  const Ended ended = run.wait();
  EXPECT_EQ(ended.code, 1);
  const std::string name = std::to_string(rank);
  expect_has(ended.err, "lockstep: worker-" + name + " stood still (SIGSTOP, or a debugger)");
  // Before the verdict everybody who waits says for whom, in what, and what that one last did.
  const std::string log = job.text("run", "logs/worker-" + std::to_string(rank == 0 ? 1 : 0) + ".log");
  for (const std::string& text : {ended.err, log}) {
    expect_has(text, " has waited ");
    expect_has(text, "rank " + name + " is stopped (SIGSTOP); it ");
    expect_has(text, "giving up after 1.0 s");
    expect_has(text, " s for rank ");
  }
}

TEST(WorkerFaults, AStoppedWorkerIsFound) { expect_stopped_is_found(1); }
TEST(WorkerFaults, AStoppedLeaderIsFound) { expect_stopped_is_found(0); }

// Worker 1 is a shell that runs the program for a while and then ends on its own.
TEST(WorkerFaults, AWorkerThatExitsIsNamed) {
  const TrainCase job(kGptJob);
  std::string program = LOCKSTEP_PROGRAM;
  for (const std::string& argument : job.arguments("run", endless())) program += " '" + argument + "'";
  LaunchRequest request;
  request.nodes.workers_per_node = 3;
  request.command = {"/bin/sh", "-c",
                     "if [ $RANK = 1 ]; then " + program + " & until [ -s " + folder_of(job, "run") +
                         "/metrics.jsonl ]; do sleep 0.02; done; echo enough of it; exit 3; fi; exec " +
                         program};
  request.log_folder = job.output("run") + "/logs";
  request.output = job.output("run");
  const std::string shown = job.folder().path("shown");
  const FileDescriptor out(::open(shown.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
  request.out = request.err = out.number();
  const WorkerSetResult result = launch(request);
  EXPECT_EQ(result.exit_code, 1);
  ASSERT_TRUE(result.first_failure);
  const std::string text = describe(*result.first_failure);
  expect_has(text, "worker-1 failed first: exited with code 3\nits last lines:\n");
  expect_has(text, "enough of it\n");
  expect_has(read_file(shown), "has died; before that, rank 1");
}

TEST(WorkerFaults, ARunThatFailedGoesOnToTheSameBits) {
  const TrainCase job(kGptJob);
  WorkersInTraining run(job, "run", endless());
  run.send(2, SIGKILL);
  EXPECT_EQ(run.wait().code, 1);
  const int64_t steps = job.metrics("run").steps.back().step + 50;
  const RunSummary again = job.trained("run", settings(steps, {"strategy.workers=2"}));
  EXPECT_EQ(again.weights_sha256, job.trained("whole", settings(steps)).weights_sha256);
  expect_same_steps(job.metrics("run"), job.metrics("whole"));
}

TEST(WorkerFaults, ARunThatIsAskedToEndSavesItself) {
  const TrainCase job(kGptJob);
  for (const int signal : {SIGTERM, SIGHUP, SIGUSR1, SIGUSR2}) {
    WorkersInTraining run(job, "run", endless());
    run.launcher().send(signal);
    const Ended ended = run.wait();
    EXPECT_EQ(ended.code, 75) << ended.err;
    EXPECT_EQ(job.summary("run").status, "preempted");
    expect_has(ended.err,
               fmt::format("SIG{}: the run saves a checkpoint and ends after", sigabbrev_np(signal)));
  }
  const int64_t steps = job.summary("run").steps + 5;
  EXPECT_EQ(job.trained("run", settings(steps)).weights_sha256,
            job.trained("whole", settings(steps)).weights_sha256);
}

// Worker 0 evaluates for several times the deadline while the others wait for it.
TEST(WorkerFaultsLong, AnEvaluationIsNotHeldAgainstTheLeader) {
  const TrainCase job(kGptJob);
  const RunSummary summary = job.trained(
      "run", settings(20, {"strategy.workers=3", "strategy.deadline=0.5", "data.eval.samples=600000"}));
  EXPECT_EQ(summary.status, "done");
  EXPECT_GT(job.metrics("run").evaluations.at(0).seconds, 0.5) << "more samples are needed on this machine";
}

// Every checkpoint waits for the one before it, which takes longer to write than a step.
TEST(WorkerFaultsLong, ACheckpointIsNotHeldAgainstTheLeader) {
  const TrainCase job(kGptJob);
  const Settings large = settings(12, {"strategy.workers=3", "strategy.deadline=0.5", "checkpoint.every=1",
                                       "model.dim=512", "model.layers=2"});
  const Settings alone = settings(12, {"model.dim=512", "model.layers=2"});
  EXPECT_EQ(job.trained("run", large).weights_sha256, job.trained("whole", alone).weights_sha256);
}

TEST(WorkerFaults, TheOutOfMemoryKillerIsNamed) {
  if (kSanitized) GTEST_SKIP() << "the sanitizer takes the memory";
  const ControlGroup group(int64_t{100} << 20);
  if (!group.why_not().empty()) GTEST_SKIP() << group.why_not();
  const TrainCase job(kGptJob);
  // What the job says it may plan for hides the group's limit; its activations then run into it.
  const Settings large = settings(20, {"strategy.workers=2", "strategy.memory=8GiB", "train.microbatch=64",
                                       "train.global_batch=256", "model.seq=128", "model.dim=128"});
  const Ended ended =
      LockstepProcess(job.arguments("run", large), job.log("run"), {.control_group = group.processes()})
          .wait();
  EXPECT_EQ(ended.code, 1) << ended.err;
  expect_has(ended.err, " failed first: killed by SIGKILL: the kernel's OOM killer");
}

TEST(WorkerFaults, SharedMemoryThatIsNotThereIsRefused) {
  if (kSanitized) GTEST_SKIP() << "the sanitizer takes the memory";
  const ControlGroup group(int64_t{100} << 20);
  if (!group.why_not().empty()) GTEST_SKIP() << group.why_not();
  const TrainCase job(kGptJob);
  const Settings large =
      settings(20, {"strategy.workers=2", "strategy.memory=8GiB", "model.dim=1024", "model.layers=4"});
  const Ended ended =
      LockstepProcess(job.arguments("run", large), job.log("run"), {.control_group = group.processes()})
          .wait();
  EXPECT_EQ(ended.code, 3);
  expect_has(ended.err, "of shared memory: ");
  expect_has(ended.err, "available; use fewer workers or a smaller model");
}

}  // namespace
}  // namespace lockstep
