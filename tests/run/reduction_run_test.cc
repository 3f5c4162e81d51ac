// Runs whose gradients are added up by Reduction Servers: the same weights as without, for any number of
// servers, and when one of them is killed or stopped in the middle of training.
#include <gtest/gtest.h>

#include <csignal>
#include <fstream>
#include <sstream>

#include "run/worker_processes.h"

namespace lockstep {
namespace {

using Settings = std::vector<std::string>;

// Large enough that its gradients are worth sending to servers, in several buckets.
constexpr const char* kJob = R"(
name: gpt
model: {family: gpt, layers: 2, dim: 64, heads: 4, vocab: 256, seq: 16}
data: {train: {format: synthetic, samples: 200}, seed: 3}
train: {steps: 6, global_batch: 8, microbatch: 1, lr: {base: 1e-2}, clip_norm: 1.0, seed: 5}
strategy: {leaves: 8, threads: 1, reduce: {bucket: 128KiB}}
)";

Settings served(int workers, int servers, const Settings& more = {}) {
  Settings all = {"strategy.workers=" + std::to_string(workers), "strategy.reduce.via=server",
                  "strategy.reduce.servers=" + std::to_string(servers)};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

// Children of the launcher that are no workers.
std::vector<pid_t> servers_of(pid_t launcher) {
  std::vector<pid_t> servers;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream command(entry.path() / "cmdline"), status(entry.path() / "status");
    std::ostringstream words, lines;
    words << command.rdbuf();
    lines << status.rdbuf();
    if (words.str().find("serve-reduce") == std::string::npos) continue;
    if (lines.str().find("PPid:\t" + std::to_string(launcher) + "\n") != std::string::npos)
      servers.push_back(std::stoi(name));
  }
  return servers;
}

void expect_has(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "no '" << part << "' in:\n" << text;
}

TEST(ReductionRun, WeightsAreThoseOfEveryOtherRoute) {
  const TrainCase job(kJob);
  const RunSummary one = job.trained("one", {"strategy.workers=1"});
  EXPECT_EQ(job.trained("direct", {"strategy.workers=3"}).weights_sha256, one.weights_sha256);
  for (const int workers : {2, 3})
    for (const int servers : {1, 2, 3}) {
      const std::string run = "served-" + std::to_string(workers) + "-" + std::to_string(servers);
      SCOPED_TRACE(run);
      const RunSummary summary = job.trained(run, served(workers, servers));
      EXPECT_EQ(summary.weights_sha256, one.weights_sha256);
      EXPECT_EQ(summary.identity_sha256, one.identity_sha256);
      ASSERT_TRUE(summary.reduction);
      EXPECT_EQ(summary.reduction->servers, servers);
      EXPECT_EQ(summary.reduction->streams, workers) << "on one host every worker is a stream of its own";
      EXPECT_EQ(summary.reduction->fallbacks, 0);
      // Every step's gradients once, and their sum back once.
      const double gradients = 4.0 * static_cast<double>(one.parameters) * 6;
      EXPECT_GT(static_cast<double>(summary.reduction->bytes_received), 0.9 * gradients);
      EXPECT_LT(static_cast<double>(summary.reduction->bytes_received),
                1.2 * gradients);  // blocks are padded
    }
}

TEST(ReductionRun, BetweenRanksWithoutSharedMemoryToo) {
  const TrainCase job(kJob);
  const RunSummary one = job.trained("one", {"strategy.workers=1"});
  const RunSummary summary = job.trained("served", served(3, 2, {"strategy.transport=ucx"}));
  EXPECT_EQ(summary.weights_sha256, one.weights_sha256);
  EXPECT_GT(summary.reduction->sums, 0);
}

TEST(ReductionRun, TheThirdPoolOfAVertexFile) {
  const TrainCase job(std::string(kJob) +
                      "workerPoolSpecs: [{replicaCount: 1}, {replicaCount: 1}, {replicaCount: 2}]\n");
  const RunSummary one = job.trained("one", {"strategy.workers=1"});
  EXPECT_FALSE(one.reduction);
  const RunSummary summary = job.trained("pools");
  EXPECT_EQ(summary.weights_sha256, one.weights_sha256);
  EXPECT_EQ(summary.workers, 2);
  ASSERT_TRUE(summary.reduction);
  EXPECT_EQ(summary.reduction->servers, 2);
}

// A run under way, one of whose servers gets a signal; how it ended.
void expect_same_without_a_server(int signal, int servers, const std::string& said) {
  const TrainCase job(kJob);
  const Settings longer = {"train.steps=60", "train.lr.decay=constant", "strategy.deadline=4"};
  Settings direct = longer;
  direct.emplace_back("strategy.workers=3");
  const RunSummary expected = job.trained("direct", direct);
  WorkersInTraining run(job, "run", served(3, servers, longer));
  const std::vector<pid_t> pids = servers_of(run.launcher().pid());
  ASSERT_EQ(static_cast<int>(pids.size()), servers);
  ::kill(pids[0], signal);
  const Ended ended = run.wait();
  EXPECT_EQ(ended.code, 0) << ended.err;
  expect_has(ended.err, said);
  expect_has(ended.err, "with the same bits");
  for (const pid_t pid : pids) EXPECT_NE(::kill(pid, 0), 0) << "a server still runs";
  const RunSummary summary = job.summary("run");
  EXPECT_EQ(summary.weights_sha256, expected.weights_sha256);
  ASSERT_TRUE(summary.reduction);
  EXPECT_EQ(summary.reduction->servers_left, servers - 1);
  EXPECT_EQ(summary.reduction->fallbacks, 1);
  ASSERT_EQ(summary.reduction->lost.size(), 1U);
}

TEST(ReductionRun, AKilledServerChangesNoBit) {
  expect_same_without_a_server(SIGKILL, 2, "has ended: killed by SIGKILL");
}
TEST(ReductionRun, WithoutTheOnlyServerTheRunGoesOnDirectly) {
  expect_same_without_a_server(SIGKILL, 1, "the run goes on without servers");
}
TEST(ReductionRun, AStoppedServerIsNamedWithinTheDeadline) {
  expect_same_without_a_server(SIGSTOP, 2, "it has said nothing for");
}

TEST(ReductionRun, AKilledWorkerIsNamed) {
  const TrainCase job(kJob);
  WorkersInTraining run(job, "run", served(3, 1, {"train.steps=1000000", "train.lr.decay=constant"}));
  run.send(1, SIGKILL);
  const Ended ended = run.wait();
  EXPECT_EQ(ended.code, 1);
  expect_has(ended.err, "lockstep: worker-1 failed first: killed by SIGKILL");
}

TEST(ReductionRun, RestartedWorkersHaveNewServers) {
  const TrainCase job(kJob);
  const Settings more = {"train.steps=40", "train.lr.decay=constant", "checkpoint.every=5"};
  Settings direct = more;
  direct.emplace_back("strategy.workers=1");
  const RunSummary expected = job.trained("direct", direct);
  FolderEvents events(folder_of(job, "run"));
  LockstepProcess launcher(job.arguments("run", served(2, 2, more), {"--max-restarts", "1"}), job.log("run"));
  wait_for_metrics(events, launcher);
  ::kill(workers_of(launcher.pid()).at(1), SIGKILL);
  const Ended ended = launcher.wait();
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(job.summary("run").weights_sha256, expected.weights_sha256);
  EXPECT_EQ(job.summary("run").reduction->fallbacks, 0);
}

TEST(ReductionRun, CheckSaysHowManyServersAreWorthIt) {
  const TrainCase job(kJob);
  const auto check = [&](const Settings& settings) {
    std::vector<std::string> arguments = {"check", job.folder().path("job.yaml")};
    for (const std::string& setting : settings) arguments.insert(arguments.end(), {"--set", setting});
    return LockstepProcess(arguments, job.log("check")).wait().out;
  };
  expect_has(check(served(2, 1)), "never worth it between 2 hosts");
  const std::string four = check(served(4, 2));
  expect_has(four, "2 (4-1)/4 = 1.5 times their gradients");
  expect_has(four, "4 servers with links as fast as the workers', 2 with twice");
  expect_has(four, "this job's 2 are enough if their links are at least 2 times as fast");
}

TEST(ReductionRun, AServerNeedsATokenAndAMaster) {
  const TestFolder folder;
  const auto refused = [&](const std::vector<std::string>& arguments,
                           const std::vector<std::string>& environment) {
    Surroundings around;
    around.environment = environment;
    const Ended ended = LockstepProcess(arguments, folder.path("serve"), around).wait();
    EXPECT_EQ(ended.code, 2) << ended.err;
    return ended.err;
  };
  expect_has(refused({"serve-reduce", "--master-addr", "127.0.0.1"}, {}), "set LOCKSTEP_TOKEN");
  expect_has(refused({"serve-reduce"}, {"LOCKSTEP_TOKEN=0123456789abcdef0123456789abcdef"}),
             "give --master-addr");
}

}  // namespace
}  // namespace lockstep
