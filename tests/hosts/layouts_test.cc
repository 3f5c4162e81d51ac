// One hash, whatever the layout: 1 to 8 workers on 1, 2 and 4 hosts, through shared memory and UCX, on one
// thread and on two. A sample of the layouts for every model; all of them in the long tests.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>

#include "base/cores.h"
#include "hosts/train_hosts.h"

namespace lockstep {
namespace {

// Eight leaves, so that eight workers have something to do, and twenty steps.
struct Family {
  const char* name;
  const char* job;
};

const Family kFamilies[] = {
    {"Gpt", R"(
name: gpt
model: {family: gpt, layers: 1, dim: 16, heads: 2, vocab: 32, seq: 8}
data: {train: {format: synthetic, samples: 100}, seed: 3}
train: {steps: 20, global_batch: 16, microbatch: 1, lr: {base: 1e-2}, clip_norm: 1.0, seed: 5}
strategy: {leaves: 8}
)"},
    {"EncoderWithDropout", R"(
name: encoder
model: {family: encoder, layers: 1, dim: 16, heads: 2, vocab: 32, seq: 8, classes: 2, dropout: 0.2}
data: {train: {format: synthetic, samples: 100}, seed: 3}
train: {steps: 20, global_batch: 16, microbatch: 2, lr: {base: 1e-2}, clip_norm: 1.0, seed: 5}
strategy: {leaves: 8}
)"},
    {"TabularWithTables", R"(
name: tabular
model: {family: tabular, dim: 4, rows: 50, bottom: [8], top: [8]}
data: {train: {format: synthetic, samples: 600}, hold_out: 0.1, seed: 3}
train: {steps: 20, global_batch: 32, microbatch: 4, lr: {base: 1e-2}, ema: 0.9}
strategy: {leaves: 8}
)"},
    {"ResnetWithStatistics", R"(
name: resnet
model: {family: resnet, width: 4, image: 32, classes: 4}
data: {train: {format: synthetic, samples: 64}, seed: 3}
train: {steps: 20, global_batch: 16, microbatch: 2, optimizer: {name: sgd}, lr: {base: 1e-2}}
strategy: {leaves: 8}
)"},
};

void PrintTo(const Family& family, std::ostream* out) { *out << family.name; }

void expect_one_hash(const Family& family, const std::vector<WorkerLayout>& layouts, int most_zero = 0) {
  const TrainCase job(family.job);
  const RunSummary one = job.trained("one", {"strategy.threads=1"});
  for (const WorkerLayout& layout : layouts)
    for (int zero = most_zero > 0 ? 1 : 0; zero <= most_zero; ++zero) {
      const std::string run = fmt::format("{}-zero-{}", layout.text(), zero);
      SCOPED_TRACE(run);
      const RunSummary found =
          TrainHosts(job, run, layout, {fmt::format("strategy.zero={}", zero)}).trained();
      EXPECT_EQ(found.weights_sha256, one.weights_sha256);
      EXPECT_EQ(found.workers, layout.workers);
      expect_same_steps(job.metrics(run), job.metrics("one"));
    }
}

// Gradients of tables and running statistics are for every worker.
int most_zero(const Family& family) {
  const std::string_view name = family.name;
  return name == "TabularWithTables" || name == "ResnetWithStatistics" ? 1 : 3;
}

class Layouts : public ::testing::TestWithParam<Family> {
 protected:
  void SetUp() override {
    if (const auto reason = why_no_hosts()) GTEST_SKIP() << *reason;
  }
};

TEST_P(Layouts, GiveOneHash) {
  expect_one_hash(GetParam(), {{.workers = 2, .hosts = 1, .threads = 1, .transport = "ucx"},
                               {.workers = 3, .hosts = 2, .threads = 2, .transport = "auto"},
                               {.workers = 4, .hosts = 4, .threads = 1, .transport = "ucx"}});
}

TEST_P(Layouts, GiveOneHashWhereTheStateIsSplit) {
  expect_one_hash(GetParam(), {{.workers = 3, .hosts = 2, .threads = 1, .transport = "auto"}},
                  most_zero(GetParam()));
}

INSTANTIATE_TEST_SUITE_P(Sample, Layouts, ::testing::ValuesIn(kFamilies),
                         [](const auto& info) { return info.param.name; });

// Groups that hold everything: the workers of a host, or of two hosts.
TEST(HostsGroups, GiveOneHash) {
  if (const auto reason = why_no_hosts()) GTEST_SKIP() << *reason;
  const TrainCase job(kFamilies[0].job);
  const RunSummary one = job.trained("one", {"strategy.threads=1"});
  for (const int hosts : {2, 4})
    for (const int zero : {1, 2, 3}) {
      const std::string run = fmt::format("{}-hosts-zero-{}", hosts, zero);
      SCOPED_TRACE(run);
      const RunSummary found = TrainHosts(job, run, {.workers = 4, .hosts = hosts, .threads = 1},
                                          {fmt::format("strategy.zero={}", zero), "strategy.zero_group=2"})
                                   .trained();
      EXPECT_EQ(found.weights_sha256, one.weights_sha256);
      EXPECT_EQ(found.zero_group, 2);
      EXPECT_EQ(found.checkpoint_writers, "all workers, each what it owns");
      expect_same_steps(job.metrics(run), job.metrics("one"));
    }
}

TEST(HostsThreads, AWorkerThatIsAloneOnItsHostUsesAllOfIt) {
  if (const auto reason = why_no_hosts()) GTEST_SKIP() << *reason;
  const TrainCase job(kFamilies[0].job);
  const int cores = available_cores().usable;
  const RunSummary apart =
      TrainHosts(job, "apart", {.workers = 2, .hosts = 2, .threads = 0}, {"train.steps=2"}).trained();
  EXPECT_EQ(apart.threads_per_worker, cores);
  const RunSummary together =
      TrainHosts(job, "together", {.workers = 3, .hosts = 2, .threads = 0}, {"train.steps=2"}).trained();
  EXPECT_EQ(together.threads_per_worker, std::max(1, cores / 2)) << "of worker 0, who is one of two there";
}

class LayoutsLong : public ::testing::TestWithParam<std::tuple<Family, int>> {
 protected:
  void SetUp() override {
    if (const auto reason = why_no_hosts()) GTEST_SKIP() << *reason;
  }
};

TEST_P(LayoutsLong, GiveOneHash) {
  const auto& [family, hosts] = GetParam();
  std::vector<WorkerLayout> layouts;
  for (int workers = hosts; workers <= 8; ++workers)
    for (const int threads : {1, 2})
      // Within a host auto is shared memory.
      for (const char* transport : {hosts == 1 ? "shm" : "auto", "ucx"})
        layouts.push_back({workers, hosts, threads, transport});
  expect_one_hash(family, layouts);
}

TEST_P(LayoutsLong, GiveOneHashWhereTheStateIsSplit) {
  const auto& [family, hosts] = GetParam();
  std::vector<WorkerLayout> layouts;
  for (int workers = std::max(2, hosts); workers <= 8; ++workers)
    for (const char* transport : {"auto", "ucx"}) layouts.push_back({workers, hosts, 1, transport});
  expect_one_hash(family, layouts, most_zero(family));
}

INSTANTIATE_TEST_SUITE_P(All, LayoutsLong,
                         ::testing::Combine(::testing::ValuesIn(kFamilies), ::testing::Values(1, 2, 4)),
                         [](const auto& info) {
                           return fmt::format("{}On{}Hosts", std::get<0>(info.param).name,
                                              std::get<1>(info.param));
                         });

}  // namespace
}  // namespace lockstep
