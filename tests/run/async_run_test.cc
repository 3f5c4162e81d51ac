// Asynchronous runs: real servers and workers, killed and stopped; what the log says of them; replays.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <csignal>
#include <fstream>
#include <set>
#include <sstream>

#include "async/apply_log.h"
#include "async/channel.h"
#include "base/error.h"
#include "base/file.h"
#include "run/async_coordinator.h"
#include "run/folder_events.h"
#include "run/train_case.h"
#include "run/worker_processes.h"

namespace lockstep {
namespace {

using Settings = std::vector<std::string>;

constexpr const char* kJob = R"(
name: gpt
model: {family: gpt, layers: 1, dim: 32, heads: 2, vocab: 64, seq: 8, dropout: 0.1}
data: {train: {format: synthetic, samples: 100}, eval: {samples: 8}, seed: 3}
train:
  steps: 40
  global_batch: 8
  microbatch: 2
  lr: {base: 1e-2, warmup: 5, decay: cosine}
  clip_norm: 1.0
  eval: {every: 10}
  seed: 5
strategy: {threads: 1}
checkpoint: {every: 10, keep: 0}
)";

Settings async(int workers, int servers, int staleness, const Settings& more = {}) {
  Settings all = {"strategy.mode=async", "strategy.workers=" + std::to_string(workers),
                  "strategy.servers=" + std::to_string(servers),
                  "strategy.staleness=" + std::to_string(staleness)};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

async::ApplyLog log_of(const TrainCase& job, const std::string& run) {
  return async::read_log(pushes_path(job.output(run)));
}

// Every lease once, none of them older than the bound (which the reader refuses), and as the summary has it.
void expect_sound_log(const TrainCase& job, const std::string& run, int64_t steps) {
  const async::ApplyLog log = log_of(job, run);
  const RunSummary summary = job.summary(run);
  EXPECT_EQ(log.tail_bytes, 0);
  ASSERT_EQ(static_cast<int64_t>(log.pushes.size()), steps);
  std::set<int64_t> leases;
  std::vector<int64_t> ages;
  for (size_t i = 0; i < log.pushes.size(); ++i) {
    leases.insert(log.pushes[i].lease);
    const auto age = static_cast<size_t>(static_cast<int64_t>(i) - log.pushes[i].read);
    EXPECT_LE(static_cast<int64_t>(age), log.header.staleness);
    if (ages.size() <= age) ages.resize(age + 1);
    ++ages[age];
  }
  EXPECT_EQ(static_cast<int64_t>(leases.size()), steps);
  EXPECT_EQ(*leases.begin(), 1);
  EXPECT_EQ(*leases.rbegin(), steps);
  ASSERT_TRUE(summary.async);
  EXPECT_EQ(summary.async->ages, ages);
  EXPECT_EQ(summary.async->log_bytes, static_cast<int64_t>(84 + 10 * log.pushes.size()));
}

// `lockstep train --replay` of a run, on other workers; its summary.
RunSummary replayed(const TrainCase& job, const std::string& of, const std::string& run, int workers,
                    const Settings& more = {}) {
  std::vector<std::string> arguments = {"train",
                                        "--replay",
                                        job.output(of),
                                        "--set",
                                        "output=" + job.output(run),
                                        "--set",
                                        "strategy.workers=" + std::to_string(workers)};
  for (const std::string& one : more) arguments.insert(arguments.end(), {"--set", one});
  const Ended ended = LockstepProcess(arguments, job.log(run)).wait();
  EXPECT_EQ(ended.code, 0) << ended.err;
  return job.summary(run);
}

std::vector<pid_t> children_of(pid_t parent, const std::string& word) {
  std::vector<pid_t> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream command(entry.path() / "cmdline"), status(entry.path() / "status");
    std::ostringstream words, lines;
    words << command.rdbuf();
    lines << status.rdbuf();
    if (words.str().find(word) == std::string::npos) continue;
    if (lines.str().find("PPid:\t" + std::to_string(parent) + "\n") != std::string::npos)
      found.push_back(std::stoi(name));
  }
  std::sort(found.begin(), found.end());
  return found;
}

// A run in the middle of training.
class AsyncInTraining {
 public:
  AsyncInTraining(const TrainCase& job, const std::string& run, const Settings& settings,
                  const std::vector<std::string>& flags = {}, const Surroundings& surroundings = {})
      : events_(folder_of(job, run)),
        process_(job.arguments(run, settings, flags), job.log(run), surroundings) {
    wait_for_metrics(events_, process_);
  }
  std::vector<pid_t> workers() const {
    std::vector<pid_t> all = children_of(process_.pid(), "train");
    return all;
  }
  std::vector<pid_t> servers() const { return children_of(process_.pid(), "serve-params"); }
  LockstepProcess& process() { return process_; }
  void wait_for_more() { wait_for_metrics(events_, process_); }

 private:
  FolderEvents events_;
  LockstepProcess process_;
};

void expect_has(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "no '" << part << "' in:\n" << text;
}

TEST(AsyncRun, OneWorkerHasTheBitsOfSynchronousTraining) {
  const TrainCase job(kJob);
  const RunSummary sync = job.trained("sync");
  for (const int servers : {1, 3}) {
    const std::string run = "async-" + std::to_string(servers);
    const RunSummary summary = job.trained(run, async(1, servers, 4));
    EXPECT_EQ(summary.weights_sha256, sync.weights_sha256);
    EXPECT_NE(summary.identity_sha256, sync.identity_sha256);
    EXPECT_EQ(summary.async->ages, std::vector<int64_t>{40});
    expect_same_steps(job.metrics(run), job.metrics("sync"));
    expect_same_evaluations(job.metrics(run), job.metrics("sync"));
    expect_sound_log(job, run, 40);
  }
}

TEST(AsyncRun, AStalenessOfZeroIsSynchronous) {
  const TrainCase job(kJob);
  const RunSummary sync = job.trained("sync");
  const RunSummary zero = job.trained("zero", async(2, 2, 0));
  EXPECT_EQ(zero.weights_sha256, sync.weights_sha256);
  EXPECT_EQ(zero.identity_sha256, sync.identity_sha256);
  EXPECT_FALSE(zero.async);
}

TEST(AsyncRun, AReplayHasTheBitsOnAnyNumberOfWorkers) {
  const TrainCase job(kJob);
  const RunSummary first = job.trained("first", async(3, 2, 5));
  expect_sound_log(job, "first", 40);
  EXPECT_EQ(first.workers, 3);
  for (const int workers : {1, 2, 4}) {
    const std::string run = "again-" + std::to_string(workers);
    const RunSummary again = replayed(job, "first", run, workers);
    EXPECT_EQ(again.weights_sha256, first.weights_sha256) << workers;
    EXPECT_TRUE(again.async->replayed);
    expect_same_steps(job.metrics(run), job.metrics("first"));
    expect_same_evaluations(job.metrics(run), job.metrics("first"));
    EXPECT_EQ(job.text(run, "pushes.log"), job.text("first", "pushes.log"));
  }
}

// Tables whose gradients are lists of rows elsewhere, and averages that servers keep.
TEST(AsyncRun, TablesAndAveragesReplayToo) {
  const TrainCase job(kTabularJob);
  const RunSummary first = job.trained("first", async(2, 1, 3, {"strategy.threads=1"}));
  expect_sound_log(job, "first", 30);
  const RunSummary again = replayed(job, "first", "again", 1);
  EXPECT_EQ(again.weights_sha256, first.weights_sha256);
  EXPECT_EQ(again.final_eval->loss, first.final_eval->loss);
}

// The leases of a killed worker go to others: no record is left out or used twice.
TEST(AsyncRun, AKilledWorkerCostsNoRecord) {
  const TrainCase job(kJob);
  AsyncInTraining run(job, "run", async(3, 2, 8, {"train.steps=400"}));
  const std::vector<pid_t> workers = run.workers();
  ASSERT_EQ(workers.size(), 3u);
  // Until all three take part: one that is two versions behind has two others beside it.
  const auto oldest = [&] {
    int64_t age = 0, number = 0;
    for (const async::AppliedPush& push : log_of(job, "run").pushes)
      age = std::max(age, number++ - push.read);
    return age;
  };
  while (oldest() < 2) run.wait_for_more();
  ::kill(workers[1], SIGKILL);
  const Ended ended = run.process().wait();
  EXPECT_EQ(ended.code, 0) << ended.err;
  expect_has(ended.err, "is lost");
  expect_has(ended.err, "is started again");
  expect_sound_log(job, "run", 400);
  ASSERT_EQ(job.summary("run").async->lost.size(), 1u);
  expect_has(job.summary("run").async->lost[0], "worker-1 is lost");
  EXPECT_EQ(replayed(job, "run", "again", 2).weights_sha256, job.summary("run").weights_sha256);
}

// Somebody else starts another worker, while the only one of the run stands still.
TEST(AsyncRun, AnotherWorkerMayJoin) {
  const TrainCase job(kJob);
  const std::string token(32, 'a');
  const Settings settings = async(1, 1, 30, {"train.steps=200"});
  AsyncInTraining run(job, "run", settings, {}, {.environment = {"LOCKSTEP_TOKEN=" + token}});
  const pid_t first = run.workers().at(0);
  const std::string address = variables_of(first).at(kCoordinatorVariable);
  ::kill(first, SIGSTOP);
  // What it had pushed before is applied; everything after that is the other one's.
  const size_t before = log_of(job, "run").pushes.size();
  LockstepProcess other(job.arguments("run", settings), job.log("other"),
                        {.environment = {"LOCKSTEP_TOKEN=" + token, "LOCKSTEP_COORDINATOR=" + address,
                                         "RANK=1", "WORLD_SIZE=2", "LOCAL_RANK=1", "LOCAL_WORLD_SIZE=2"}});
  while (log_of(job, "run").pushes.size() < before + 4) run.wait_for_more();
  ::kill(first, SIGCONT);
  const Ended ended = run.process().wait();
  EXPECT_EQ(ended.code, 0) << ended.err;
  const Ended joined = other.wait();
  EXPECT_EQ(joined.code, 0) << joined.err;
  expect_sound_log(job, "run", 200);
  EXPECT_GT(job.summary("run").async->ages.size(), 1u) << "one worker alone is never behind";
}

// A server's part of the model is gone with it: the run says so, and goes on from its checkpoint.
TEST(AsyncRun, AKilledServerEndsTheRunWhichGoesOnFromItsCheckpoint) {
  const TrainCase job(kJob);
  const Settings settings = async(2, 2, 4, {"train.steps=300"});
  {
    AsyncInTraining run(job, "run", settings);
    const std::vector<pid_t> servers = run.servers();
    ASSERT_EQ(servers.size(), 2u);
    ::kill(servers[1], SIGKILL);
    const Ended ended = run.process().wait();
    EXPECT_EQ(ended.code, 1);
    expect_has(ended.err, "server-2");
    EXPECT_EQ(job.summary("run").status, "failed");
    EXPECT_EQ(job.summary("run").weights_sha256, "");
  }
  const RunSummary summary = job.trained("run", settings);
  EXPECT_EQ(summary.steps, 300);
  expect_sound_log(job, "run", 300);
  EXPECT_EQ(replayed(job, "run", "again", 2).weights_sha256, summary.weights_sha256);
}

TEST(AsyncRun, MaxRestartsGoesOnByItself) {
  const TrainCase job(kJob);
  AsyncInTraining run(job, "run", async(2, 1, 4, {"train.steps=150"}), {"--max-restarts", "2"});
  const std::vector<pid_t> coordinator = run.workers();
  ASSERT_EQ(coordinator.size(), 1u);
  const std::vector<pid_t> servers = children_of(coordinator[0], "serve-params");
  ASSERT_EQ(servers.size(), 1u);
  ::kill(servers[0], SIGKILL);
  const Ended ended = run.process().wait();
  EXPECT_EQ(ended.code, 0) << ended.err;
  expect_sound_log(job, "run", 150);
  EXPECT_EQ(replayed(job, "run", "again", 1).weights_sha256, job.summary("run").weights_sha256);
}

TEST(AsyncRun, AStoppedServerIsNamedWithinTheDeadline) {
  const TrainCase job(kJob);
  AsyncInTraining run(job, "run", async(2, 2, 4, {"train.steps=100000", "strategy.deadline=5"}));
  const std::vector<pid_t> servers = run.servers();
  ASSERT_EQ(servers.size(), 2u);
  ::kill(servers[0], SIGSTOP);
  const Ended ended = run.process().wait();
  EXPECT_EQ(ended.code, 1);
  expect_has(ended.err, "server-1 at ");
  expect_has(ended.err, "has said nothing for");
  expect_has(ended.err, "server-1 stands still (SIGSTOP, or a debugger)");
}

// A worker that happens to be stopped between two leases takes nothing with it: then another run is tried.
TEST(AsyncRun, AStoppedWorkersLeaseGoesToAnother) {
  constexpr int kMostRuns = 10;
  const TrainCase job(kJob);
  bool named = false;
  for (int i = 0; i < kMostRuns && !named; ++i) {
    const std::string name = fmt::format("run-{}", i);
    AsyncInTraining run(job, name, async(2, 1, 4, {"train.steps=300", "strategy.deadline=5"}));
    const std::vector<pid_t> workers = run.workers();
    ASSERT_EQ(workers.size(), 2u);
    ::kill(workers[0], SIGSTOP);
    const Ended ended = run.process().wait();
    EXPECT_EQ(ended.code, 0) << ended.err;
    named = ended.err.find("stands still (SIGSTOP, or a debugger)") != std::string::npos;
    expect_sound_log(job, name, 300);
  }
  EXPECT_TRUE(named);
}

TEST(AsyncRun, ASignalEndsItWithACheckpointToGoOnFrom) {
  const TrainCase job(kJob);
  const Settings settings = async(2, 2, 4, {"train.steps=400"});
  {
    AsyncInTraining run(job, "run", settings);
    run.process().send(SIGTERM);
    EXPECT_EQ(run.process().wait().code, 75);
  }
  const RunSummary ended = job.summary("run");
  EXPECT_EQ(ended.status, "preempted");
  EXPECT_EQ(static_cast<int64_t>(log_of(job, "run").pushes.size()), ended.steps);
  // What a run that did not finish has done can be repeated as well.
  EXPECT_EQ(replayed(job, "run", "again", 1).weights_sha256, ended.weights_sha256);
  EXPECT_EQ(job.trained("run", settings).steps, 400);
  expect_sound_log(job, "run", 400);
}

// Which records a checkpoint has seen is in the log alone.
TEST(AsyncRun, ACheckpointWithoutItsLogIsRefused) {
  const TrainCase job(kJob);
  job.trained("run", async(2, 1, 4));
  const std::string whole = job.text("run", "pushes.log");
  const Settings longer = async(2, 1, 4, {"train.steps=60", "train.lr.decay=constant"});
  job.trained("other", async(2, 1, 4, {"train.lr.decay=constant"}));
  const std::string path = pushes_path(job.output("other"));
  write_file(path, read_file(path).substr(0, 84 + 10 * 12));
  const Ended cut = job.train("other", longer);
  EXPECT_EQ(cut.code, 2) << cut.err;
  expect_has(cut.err, "ends after push 12, and the checkpoint is of push 40");
  write_file(path, whole);
  expect_has(job.train("other", longer).err, "is the log of another run");
  std::filesystem::remove(path);
  expect_has(job.train("other", longer).err, "pushes.log");
  const Ended other = LockstepProcess({"train", "--replay", job.output("run"), "--set",
                                       "output=" + job.output("again"), "--set", "train.seed=9"},
                                      job.log("again"))
                          .wait();
  EXPECT_EQ(other.code, 2) << other.err;
  expect_has(other.err, "is of a run with the identity");
}

// A file that may not grow is what a full disk is to the log.
TEST(AsyncRun, AFullDiskUnderTheLogEndsTheRun) {
  const TrainCase job(kJob);
  const std::vector<std::string> arguments = job.arguments(
      "run", async(2, 1, 4, {"train.steps=20000", "train.eval.every=20000", "checkpoint.every=20000"}));
  Surroundings small;
  small.file_limit = 100000;
  const Ended ended = LockstepProcess(arguments, job.log("run"), small).wait();
  EXPECT_EQ(ended.code, 1);
  const async::ApplyLog log = log_of(job, "run");
  EXPECT_LE(log.whole_bytes, 100000);
}

// Strangers, garbage and oversize frames disturb nobody.
TEST(AsyncRun, StrangersAreTurnedAway) {
  const TrainCase job(kJob);
  const std::string token(32, 'a');
  AsyncInTraining run(job, "run", async(2, 1, 4, {"train.steps=300"}), {},
                      {.environment = {"LOCKSTEP_TOKEN=" + token}});
  const auto variables = variables_of(run.workers().at(0));
  const HostPort address = parse_host_port(variables.at(kCoordinatorVariable), "a test");
  const TimePoint deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  EXPECT_THROW(async::Channel::connect(address, std::string(32, 'b'), "worker-9", deadline), CommError);
  const Descriptor garbage = connect_to(address, deadline);
  const std::string noise(600, 'x');
  send(garbage.get(), noise.data(), noise.size(), MSG_NOSIGNAL);
  // One who knows the token and announces more than may be sent.
  const Descriptor oversize = connect_to(address, deadline);
  greet(oversize, async::kAsyncProtocol, token, "worker-9", deadline);
  async::AsyncHeaderBytes header = async::encode({.kind = async::AsyncKind::kWork, .payload = 1});
  const uint32_t much = ~uint32_t{0};
  std::memcpy(header.data() + 8, &much, sizeof much);
  send(oversize.get(), header.data(), header.size(), MSG_NOSIGNAL);
  const Ended ended = run.process().wait();
  EXPECT_EQ(ended.code, 0) << ended.err;
  expect_sound_log(job, "run", 300);
}

std::string refusal(const TrainCase& job, const Settings& settings) {
  const Ended ended = job.train("refused", settings);
  EXPECT_EQ(ended.code, 2) << ended.err;
  return ended.err;
}

TEST(AsyncRun, CheckSaysWhatTheBoundPermits) {
  const TrainCase job(kJob);
  const auto checked = [&](const Settings& settings) {
    std::vector<std::string> arguments = job.arguments("none", settings);
    arguments[0] = "check";
    return LockstepProcess(arguments, job.log("check")).wait().out;
  };
  // More workers than leaves: each has all of them.
  const std::string text = checked(async(8, 2, 14));
  expect_has(text, "8 workers push to 2 parameter servers, weights at most 14 updates behind");
  expect_has(text, "up to 2 times slower");
  expect_has(text, "needs strategy.staleness 30");
  expect_has(checked(async(4, 1, 13)), "needs strategy.staleness 13");
  expect_has(checked(async(2, 1, 0)), "strategy.staleness 0: synchronous");
}

TEST(AsyncRun, RefusesWhatDoesNotGoWithIt) {
  const TrainCase job(kJob);
  expect_has(refusal(job, async(2, 1, 4, {"strategy.zero=1"})), "does not go with strategy.mode async");
  expect_has(refusal(job, async(2, 1, 4, {"strategy.reduce.via=server"})), "strategy.reduce.via direct");
  expect_has(refusal(job, async(2, 1, 4, {"strategy.reduce.order=fast"})), "canonical");
  expect_has(refusal(job, async(2, 1, 4, {"train.optimizer.name=lamb"})), "adamw, adam, lion or sgd");
  expect_has(refusal(job, async(2, 1, 4, {"train.guard.non_finite=rewind"})), "skip or stop");
  expect_has(refusal(job, {"strategy.staleness=3"}), "write strategy.mode: async");
  expect_has(refusal(job, async(2, 200, 4)), "blocks of 1024 parameters");
  expect_has(refusal(TrainCase(kResnetJob), async(2, 1, 4)), "running statistics");
}

}  // namespace
}  // namespace lockstep
