// Several worker processes: the bits of one, another number of them after a restart, and how they end.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <csignal>

#include "launch/tcp.h"
#include "run/worker_processes.h"

namespace lockstep {
namespace {

using Settings = std::vector<std::string>;

std::string workers(int count) { return "strategy.workers=" + std::to_string(count); }

void expect_same_bits(const char* text, const Settings& more, int most) {
  const TrainCase job(text);
  Settings settings = more;
  settings.insert(settings.end(), {"train.steps=8", "strategy.leaves=4", "strategy.threads=1"});
  const RunSummary one = job.trained("one", settings);
  settings.emplace_back();
  for (int count = 2; count <= most; ++count) {
    settings.back() = workers(count);
    const std::string run = "with-" + std::to_string(count);
    const RunSummary found = job.trained(run, settings);
    EXPECT_EQ(found.weights_sha256, one.weights_sha256) << count << " workers";
    EXPECT_EQ(found.identity_sha256, one.identity_sha256);
    EXPECT_EQ(found.workers, count);
    expect_same_steps(job.metrics(run), job.metrics("one"));
    expect_same_evaluations(job.metrics(run), job.metrics("one"));
  }
}

TEST(RunWorkers, GiveTheBitsOfOne) { expect_same_bits(kGptJob, {}, 4); }
TEST(RunWorkers, GiveTheBitsOfOneWithGroupedHeads) {
  expect_same_bits(kLlamaJob, {}, 3);
  expect_same_bits(kLlamaJob, {"model.tied=true", "train.precision=fp32"}, 2);
}
TEST(RunWorkers, GiveTheBitsOfOneInPureBf16) {
  expect_same_bits(kLlamaJob, {"train.precision=bf16_pure"}, 3);
  expect_same_bits(kGptJob, {"train.precision=bf16_pure", "train.moments=bf16", "train.ema=0.9"}, 2);
}
TEST(RunWorkers, GiveTheBitsOfOneWithAHeadInChunks) {
  expect_same_bits(kLlamaJob, {"train.head_chunks=3"}, 3);
  expect_same_bits(
      kGptJob, {"train.head_chunks=2", "train.recompute=block", "strategy.zero=3", "strategy.transport=ucx"},
      2);
}
TEST(RunWorkers, GiveTheBitsOfOneWithTables) { expect_same_bits(kTabularJob, {}, 3); }
TEST(RunWorkers, GiveTheBitsOfOneWithGeneratedRecordsToEvaluateOn) {
  expect_same_bits(kTabularJob, {"data.hold_out=0", "data.eval.samples=64"}, 2);
}
TEST(RunWorkers, GiveTheBitsOfOneWithStatistics) { expect_same_bits(kResnetJob, {"train.microbatch=2"}, 3); }

TEST(RunWorkers, MayBeAnotherNumberAfterARestart) {
  const TrainCase job(kGptJob);
  const Settings settings = {"strategy.leaves=4", "strategy.threads=1", "train.lr.decay=constant",
                             "train.lr.warmup=2"};
  Settings whole = settings;
  whole.emplace_back("train.steps=12");
  const RunSummary one = job.trained("whole", whole);
  // A constant rate lets a run end early and go on; the number of workers changes from start to start.
  int64_t end = 4;
  for (const int count : {2, 4, 1}) {
    Settings part = settings;
    part.insert(part.end(), {"train.steps=" + std::to_string(end), workers(count)});
    job.trained("parts", part);
    end += 4;
  }
  EXPECT_EQ(job.summary("parts").weights_sha256, one.weights_sha256);
}

int64_t free_port() { return bound_port(listen_on({"127.0.0.1", 0})); }

// As another launcher would start one of two workers.
std::vector<std::string> started_by_hand(int rank, int64_t port, const std::vector<std::string>& arguments) {
  std::vector<std::string> command = {"/usr/bin/env",
                                      fmt::format("RANK={}", rank),
                                      "WORLD_SIZE=2",
                                      fmt::format("LOCAL_RANK={}", rank),
                                      "LOCAL_WORLD_SIZE=2",
                                      "MASTER_ADDR=127.0.0.1",
                                      fmt::format("MASTER_PORT={}", port),
                                      LOCKSTEP_PROGRAM};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return command;
}

TEST(RunWorkers, FollowersNeedNoFileOfTheRun) {
  const TrainCase job(kTabularJob);
  Settings settings = {"strategy.leaves=4", "strategy.threads=1", "train.lr.decay=constant",
                       "train.lr.warmup=2", "train.steps=8"};
  const RunSummary whole = job.trained("whole", settings);
  // Two starts; the follower looks for the run where there is none, as on a host of its own.
  for (const char* steps : {"train.steps=4", "train.steps=8"}) {
    settings.back() = steps;
    const int64_t port = free_port();
    ChildProcess leader(started_by_hand(0, port, job.arguments("parts", settings)), job.log("leader"));
    ChildProcess follower(started_by_hand(1, port, job.arguments("elsewhere", settings)),
                          job.log("follower"));
    const Ended ended = leader.wait();
    EXPECT_EQ(ended.code, 0) << ended.err;
    EXPECT_EQ(follower.wait().code, 0);
  }
  EXPECT_EQ(job.summary("parts").weights_sha256, whole.weights_sha256);
  EXPECT_EQ(job.summary("parts").restarts, 1);
  EXPECT_FALSE(std::filesystem::exists(job.output("elsewhere")));
}

TEST(RunWorkers, MoreThanLeavesAreRefused) {
  const TrainCase job(kGptJob);
  const Ended ended = job.train("many", {"strategy.leaves=2", workers(3)});
  EXPECT_EQ(ended.code, 2) << ended.err;
  EXPECT_NE(ended.err.find("3 workers cannot share the 2 leaves"), std::string::npos) << ended.err;
}

// What PyTorch's, TensorFlow's and Vertex AI's programs look for.
TEST(RunWorkers, AreToldTheirPlaceInEveryWay) {
  const TrainCase job(kGptJob);
  WorkersInTraining run(job, "run",
                        {"train.steps=10000000", "train.lr.decay=constant", "strategy.leaves=4",
                         "strategy.threads=1", "workerPoolSpecs=[{replicaCount: 2}]"});
  ASSERT_EQ(run.workers().size(), 2u);
  for (const auto& [rank, pid] : run.workers()) {
    const std::map<std::string, std::string> found = variables_of(pid);
    const std::string number = std::to_string(rank), folder = job.output("run");
    const std::map<std::string, std::string> expected = {
        {"RANK", number},
        {"WORLD_SIZE", "2"},
        {"LOCAL_RANK", number},
        {"LOCAL_WORLD_SIZE", "2"},
        {"NODE_RANK", "0"},
        {"GROUP_RANK", "0"},
        {"MASTER_ADDR", "127.0.0.1"},
        {"TORCHELASTIC_RUN_ID", "gpt"},
        {"TORCHELASTIC_RESTART_COUNT", "0"},
        {"TORCHELASTIC_MAX_RESTARTS", "0"},
        {"TORCHELASTIC_ERROR_FILE", fmt::format("{}/logs/worker-{}.error.json", folder, number)},
        {"AIP_MODEL_DIR", folder + "/model"},
        {"AIP_CHECKPOINT_DIR", folder + "/checkpoints"},
        {"AIP_TENSORBOARD_LOG_DIR", folder + "/logs"}};
    for (const auto& [name, value] : expected) EXPECT_EQ(found.at(name), value) << name;
    for (const char* name : {"MASTER_PORT", "OMP_NUM_THREADS"})
      EXPECT_GT(std::stoi(found.at(name)), 0) << name;
    EXPECT_NE(found.at("TF_CONFIG").find(rank == 0 ? R"("type":"chief")" : R"("type":"worker")"),
              std::string::npos);
    EXPECT_NE(
        found.at("CLUSTER_SPEC").find(rank == 0 ? R"("type":"workerpool0")" : R"("type":"workerpool1")"),
        std::string::npos);
  }
  run.launcher().send(SIGTERM);
  EXPECT_EQ(run.wait().code, 75);
}

}  // namespace
}  // namespace lockstep
