// Checkpoints that all workers write together: the bytes that the leader alone would have written, complete
// or absent whoever is killed, and the leader alone where not all see its folder.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <random>
#include <thread>

#include "launch/rendezvous.h"
#include "run/worker_processes.h"
#include "train/checkpoint/checkpoint_folder.h"
#include "train/checkpoint/checkpoint_reader.h"

namespace lockstep {
namespace {

using Settings = std::vector<std::string>;

Settings operator+(Settings a, const Settings& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

const Settings kFour = {"strategy.leaves=4", "strategy.threads=1"};

Settings layout(int workers, int stage, const std::string& transport) {
  return {fmt::format("strategy.workers={}", workers), fmt::format("strategy.zero={}", stage),
          "strategy.transport=" + transport};
}

void expect_has(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "no '" << part << "' in:\n" << text;
}

// Every file of tensors, and what the manifest says of them.
void expect_files_of_the_leader(const char* text, const Settings& settings) {
  SCOPED_TRACE(fmt::format("{}", fmt::join(settings, " ")));
  const TrainCase job(text);
  const Settings all =
      kFour + Settings{"train.steps=8", "checkpoint.every=4", "checkpoint.keep=0"} + settings;
  const RunSummary owners = job.trained("owners", all);
  const RunSummary leader = job.trained("leader", all + Settings{"checkpoint.writers=leader"});
  EXPECT_EQ(owners.checkpoint_writers, "all workers, each what it owns");
  EXPECT_EQ(leader.checkpoint_writers, "worker 0 (as checkpoint.writers says)");
  EXPECT_EQ(owners.weights_sha256, leader.weights_sha256);
  for (const char* checkpoint : {"checkpoint-4", "checkpoint-8"}) {
    const CheckpointManifest found = read_manifest(job.output("owners") + "/" + checkpoint);
    const CheckpointManifest expected = read_manifest(job.output("leader") + "/" + checkpoint);
    EXPECT_EQ(job.names(std::string("owners/") + checkpoint), job.names(std::string("leader/") + checkpoint));
    ASSERT_EQ(found.files.size(), expected.files.size());
    for (size_t i = 0; i < found.files.size(); ++i) {
      const std::string name = expected.files[i].name;
      EXPECT_EQ(found.files[i].name, name);
      if (!name.ends_with(".safetensors")) continue;
      EXPECT_TRUE(job.text("owners", fmt::format("{}/{}", checkpoint, name)) ==
                  job.text("leader", fmt::format("{}/{}", checkpoint, name)))
          << checkpoint << "/" << name;
      EXPECT_EQ(found.files[i].sha256, expected.files[i].sha256);
      ASSERT_EQ(found.files[i].tensors.size(), expected.files[i].tensors.size());
      for (size_t t = 0; t < found.files[i].tensors.size(); ++t) {
        EXPECT_EQ(found.files[i].tensors[t].name, expected.files[i].tensors[t].name);
        EXPECT_EQ(found.files[i].tensors[t].checksum, expected.files[i].tensors[t].checksum);
      }
    }
    // Every byte is compared with the manifest.
    EXPECT_NO_THROW(CheckpointReader(job.output("owners") + "/" + checkpoint));
  }
}

TEST(OwnersRun, WriteWhatTheLeaderWrites) {
  expect_files_of_the_leader(kGptJob, layout(2, 0, "auto"));
  expect_files_of_the_leader(kGptJob, layout(3, 0, "ucx") + Settings{"train.ema=0.9"});
  expect_files_of_the_leader(kGptJob, layout(2, 1, "auto"));
  expect_files_of_the_leader(kGptJob, layout(3, 2, "ucx") + Settings{"strategy.reduce.bucket=4KiB"});
  expect_files_of_the_leader(kGptJob,
                             layout(3, 3, "ucx") + Settings{"strategy.reduce.bucket=4KiB", "train.ema=0.9"});
  expect_files_of_the_leader(kGptJob, layout(4, 3, "ucx") + Settings{"strategy.zero_group=2"});
  expect_files_of_the_leader(kGptJob, layout(4, 1, "auto") + Settings{"strategy.zero_group=2"});
}
TEST(OwnersRun, WriteWhatTheLeaderWritesOfTablesStatisticsAndNarrowWeights) {
  expect_files_of_the_leader(kTabularJob, layout(2, 1, "ucx"));
  expect_files_of_the_leader(kResnetJob, layout(2, 0, "auto") + Settings{"train.microbatch=2"});
  expect_files_of_the_leader(
      kLlamaJob, layout(3, 2, "auto") + Settings{"train.precision=bf16_pure", "train.moments=bf16"});
}
TEST(OwnersRun, WriteWhatTheLeaderWritesOfAModelInParts) {
  const Settings blocks = {"model.layers=3", "train.microbatch=1"}, heads = {"model.heads=4", "model.dim=32"};
  expect_files_of_the_leader(kGptJob, blocks + layout(2, 0, "auto") + Settings{"strategy.pipeline=2"});
  expect_files_of_the_leader(kGptJob,
                             blocks + layout(4, 3, "ucx") + Settings{"strategy.pipeline=2", "train.ema=0.9"});
  expect_files_of_the_leader(kGptJob, heads + layout(2, 0, "auto") + Settings{"strategy.tensor=2"});
  expect_files_of_the_leader(kGptJob, heads + layout(4, 1, "auto") + Settings{"strategy.tensor=2"});
}
TEST(OwnersRun, WriteWhatTheLeaderWritesOfWhatLeavesKeep) {
  expect_files_of_the_leader(kGptJob, layout(2, 0, "auto") + Settings{"strategy.reduce.compress=topk"});
}

// 8.6 million parameters: 33 MiB of weights and twice as much of moments.
const char* const kLarge = R"(
name: gpt
model: {family: gpt, layers: 2, dim: 512, heads: 8, vocab: 4096, seq: 16}
data: {train: {format: synthetic, samples: 64}}
train: {steps: 6, global_batch: 8, microbatch: 2, lr: {base: 1e-3}}
checkpoint: {every: 1}
strategy: {leaves: 4, threads: 1, deadline: 20}
)";

// Whoever is killed while the files are written, synced or read again.
TEST(OwnersRun, AKilledWorkerLeavesTheCheckpointBefore) {
  const TrainCase job(kLarge);
  const RunSummary whole = job.trained("whole", layout(3, 2, "ucx") + Settings{"checkpoint.every="});
  std::mt19937 random(7);
  int left = 0;
  const auto cut = layout(3, 2, "ucx");
  std::filesystem::create_directories(job.output("cut"));
  for (int round = 0; round < 6; ++round) {
    FolderEvents events(job.output("cut"));
    LockstepProcess launcher(job.arguments("cut", cut), job.log("cut"));
    int writes = 1 + static_cast<int>(random() % 2);
    while (writes > 0) {
      const auto event = events.next(launcher);
      if (!event) break;
      writes -= event->created && event->name.find(".tmp-") != std::string::npos &&
                        event->name.starts_with("checkpoint-")
                    ? 1
                    : 0;
    }
    if (writes > 0) break;  // it has come to its end
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 200));
    const auto workers = workers_of(launcher.pid());
    const auto found = workers.find(round % 3);
    if (found != workers.end()) ::kill(found->second, SIGKILL);
    launcher.wait();
    for (const std::string& name : job.names("cut")) left += name.find(".tmp-") != std::string::npos ? 1 : 0;
    for (const CheckpointInfo& checkpoint : list_checkpoints(job.output("cut")))
      EXPECT_NO_THROW(CheckpointReader{checkpoint.path});
  }
  EXPECT_GT(left, 0) << "no kill fell into a write that it cut off";
  EXPECT_EQ(job.trained("cut", cut).weights_sha256, whole.weights_sha256);
  for (const std::string& name : job.names("cut")) EXPECT_EQ(name.find(".tmp-"), std::string::npos) << name;
}

// Two workers, started as anybody may, that need not agree on paths.
class TwoWorkers {
 public:
  TwoWorkers(const char* text, Settings settings)
      : job_(text), settings_(std::move(settings)), port_(bound_port(listen_on({"127.0.0.1", 0}))) {
    std::filesystem::create_directories(job_.folder().path("tokens"));
  }

  const TrainCase& job() const { return job_; }
  std::unique_ptr<LockstepProcess> start(int rank, const std::string& run,
                                         std::optional<uint64_t> file_limit = {}) const {
    Surroundings surroundings;
    surroundings.file_limit = file_limit;
    surroundings.environment = {
        "RANK=" + std::to_string(rank),         "WORLD_SIZE=2",
        "LOCAL_RANK=" + std::to_string(rank),   "LOCAL_WORLD_SIZE=2",
        "MASTER_PORT=" + std::to_string(port_), "XDG_RUNTIME_DIR=" + job_.folder().path("tokens")};
    return std::make_unique<LockstepProcess>(job_.arguments(run, settings_),
                                             job_.log("worker-" + std::to_string(rank)), surroundings);
  }

 private:
  TrainCase job_;
  Settings settings_;
  int64_t port_;
};

TEST(OwnersRun, TheLeaderWritesAloneWhereAWorkerSeesAnotherFolder) {
  for (const int stage : {0, 2}) {
    const TwoWorkers two(kGptJob,
                         kFour + layout(2, stage, "ucx") +
                             Settings{"train.steps=8", "checkpoint.every=4", "strategy.deadline=20"});
    std::filesystem::create_directories(two.job().output("other"));
    const auto first = two.start(0, "run"), second = two.start(1, "other");
    const Ended ended = first->wait();
    EXPECT_EQ(ended.code, 0) << ended.err;
    EXPECT_EQ(second->wait().code, 0);
    const std::string expected =
        fmt::format("worker 0 (worker 1 does not find worker 0's files in {}: No such file or directory)",
                    two.job().output("other"));
    EXPECT_EQ(two.job().summary("run").checkpoint_writers, expected);
    expect_has(ended.out + ended.err, "saved by   " + expected);
    EXPECT_NO_THROW(CheckpointReader(two.job().output("run") + "/checkpoint-8"));
    EXPECT_EQ(two.job().names("other"), std::vector<std::string>{});
  }
}

TEST(OwnersRun, AFullDiskIsToldOfTheWorkerThatMetIt) {
  const TwoWorkers two(kLarge, layout(2, 2, "ucx"));
  std::filesystem::create_directories(two.job().output("run"));
  // What no other file of the run comes near.
  const auto first = two.start(0, "run"), second = two.start(1, "run", uint64_t{30} << 20);
  const Ended ended = first->wait();
  EXPECT_EQ(ended.code, 1);
  expect_has(ended.err, "checkpoint 1 was not saved: worker 1 cannot write bytes from ");
  expect_has(ended.err, two.job().output("run") + "/checkpoint-1.tmp-");
  expect_has(ended.err,
             "model.safetensors: File too large; the file is larger than the limit of this process");
  expect_has(ended.err, "(there is none before it)");
  second->wait();
  for (const std::string& name : two.job().names("run"))
    EXPECT_EQ(name.find("checkpoint-"), std::string::npos) << name;
}

}  // namespace
}  // namespace lockstep
