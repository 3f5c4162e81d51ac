#include "prepare/host_share.h"

#include <gtest/gtest.h>

#include "job/parse.h"
#include "launch/environment.h"

namespace lockstep {
namespace {

constexpr int64_t kGiB = int64_t{1} << 30;

HostShare share(const Variables& variables, const Cores& cores) {
  return host_share(placement_from(variables), cores);
}

TEST(HostShare, CoresAreDividedOnce) {
  EXPECT_EQ(worker_processors(16, 16, 1), 16);
  EXPECT_EQ(worker_processors(16, 16, 4), 4);
  EXPECT_EQ(worker_processors(4, 16, 4), 4);  // bound to cores of its own
  EXPECT_EQ(worker_processors(2, 16, 4), 2);  // to fewer than there are
  EXPECT_EQ(worker_processors(8, 16, 4), 4);  // to a socket, which it has with another
  EXPECT_EQ(worker_processors(16, 16, 5), 3);
  EXPECT_EQ(worker_processors(2, 2, 5), 1);
}

TEST(HostShare, FourHostsOfSixteenCoresWithOneWorkerEachUseSixteenThreadsEach) {
  const HostShare found = share({{"RANK", "2"},
                                 {"WORLD_SIZE", "4"},
                                 {"LOCAL_RANK", "0"},
                                 {"LOCAL_WORLD_SIZE", "1"},
                                 {"MASTER_ADDR", "host0"}},
                                {16, 16});
  EXPECT_EQ(found.processors, 16);
  EXPECT_EQ(found.memory(64 * kGiB), 64 * kGiB);
}

TEST(HostShare, WorkersOfOneHostDivideItsCoresAndMemory) {
  const HostShare found = share({{"RANK", "6"},
                                 {"WORLD_SIZE", "8"},
                                 {"LOCAL_RANK", "2"},
                                 {"LOCAL_WORLD_SIZE", "4"},
                                 {"MASTER_ADDR", "host0"}},
                                {16, 16});
  EXPECT_EQ(found.local_rank, 2);
  EXPECT_EQ(found.workers, 4);
  EXPECT_EQ(found.processors, 4);
  EXPECT_EQ(found.memory(64 * kGiB), 16 * kGiB);
}

TEST(HostShare, WhoeverIsBoundIsNotDividedAgainButSharesTheMemory) {
  const Variables mpi = {{"OMPI_COMM_WORLD_RANK", "1"},
                         {"OMPI_COMM_WORLD_SIZE", "4"},
                         {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                         {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}};
  EXPECT_EQ(share(mpi, {.usable = 4, .machine = 16}).processors, 4);
  EXPECT_EQ(share(mpi, {.usable = 16, .machine = 16}).processors, 4);
  EXPECT_EQ(share(mpi, {.usable = 4, .machine = 16}).memory(64 * kGiB), 16 * kGiB);
}

// Slurm may confine a step to a part of a node without binding its tasks to parts of that.
TEST(HostShare, SlurmSaysHowManyCoresTheTasksHaveTogether) {
  const Variables slurm = {{"SLURM_STEP_ID", "0"},        {"SLURM_PROCID", "1"},
                           {"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_STEP_NUM_NODES", "1"},
                           {"SLURM_NODEID", "0"},         {"SLURM_LOCALID", "1"},
                           {"SLURM_CPUS_ON_NODE", "16"},  {"SLURM_STEP_NODELIST", "n1"}};
  EXPECT_EQ(share(slurm, {.usable = 16, .machine = 64}).processors, 4);
  EXPECT_EQ(share(slurm, {.usable = 4, .machine = 64}).processors, 4);
}

// An agent (ours, torchrun's) that may use eight cores starts workers that may use the same eight.
TEST(HostShare, WorkersOfAnAgentDivideWhatTheAgentMayUse) {
  const Variables agent = {{"RANK", "0"},
                           {"WORLD_SIZE", "4"},
                           {"LOCAL_RANK", "0"},
                           {"LOCAL_WORLD_SIZE", "4"},
                           {"TORCHELASTIC_RUN_ID", "x"}};
  EXPECT_EQ(share(agent, {.usable = 8, .machine = 64}).processors, 2);
}

TEST(HostShare, WithoutAPlaceAllIsOneWorkers) {
  const HostShare alone = share({}, {.usable = 8, .machine = 64});
  EXPECT_EQ(alone.processors, 8);
  EXPECT_EQ(alone.memory(kGiB), kGiB);
}

// Workers that are told their ranks alone, and that the first is on this host, are all here.
TEST(HostShare, WorkersThatMeetAtLoopbackAreOfOneHost) {
  for (const char* address : {"127.0.0.1", "localhost", "::1"}) {
    const HostShare found = share({{"RANK", "1"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", address}}, {16, 16});
    EXPECT_EQ(found.local_rank, 1);
    EXPECT_EQ(found.workers, 4);
    EXPECT_EQ(found.processors, 4);
  }
}

TEST(HostShare, BeforeTheyAreStartedTheWorkersOfAJobAreExpectedHere) {
  const char* const job =
      "model: {family: gpt, layers: 1, dim: 16, heads: 2, vocab: 32, seq: 8}\n"
      "data: {train: {format: synthetic, samples: 64}}\n"
      "train: {steps: 2, global_batch: 16, microbatch: 4, lr: {base: 1e-3}}\n";
  const auto processors = [&](const std::vector<std::string>& overrides) {
    return expected_share(parse_job(job, "job.yaml", overrides), {16, 16}).processors;
  };
  EXPECT_EQ(processors({}), 16);
  EXPECT_EQ(processors({"strategy.workers=4"}), 4);
}

}  // namespace
}  // namespace lockstep
