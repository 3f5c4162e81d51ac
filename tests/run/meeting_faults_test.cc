// Workers that somebody else started, and what can go wrong before step 1: one that never comes, a port in
// use, a peer with another job or version, strangers at the port. Whoever is at fault is named, and no token
// is left behind.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <nlohmann/json.hpp>

#include "base/version.h"
#include "launch/rendezvous.h"
#include "run/train_case.h"

namespace lockstep {
namespace {

using Settings = std::vector<std::string>;
using std::chrono::milliseconds;

constexpr milliseconds kLong{20000};
constexpr const char* kToken = "0123456789abcdef";

void expect_has(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "no '" << part << "' in:\n" << text;
}

int64_t free_port() { return bound_port(listen_on({"127.0.0.1", 0})); }

// Two workers of one host, started as anybody may: by RANK and WORLD_SIZE.
class TwoByHand {
 public:
  explicit TwoByHand(int64_t port = free_port()) : job_(kGptJob), port_(port) {
    std::filesystem::create_directories(tokens());
  }
  ~TwoByHand() {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(tokens()))
      EXPECT_TRUE(entry.is_directory()) << "left: " << entry.path();
  }
  TwoByHand(const TwoByHand&) = delete;
  TwoByHand& operator=(const TwoByHand&) = delete;

  const TrainCase& job() const { return job_; }
  HostPort address() const { return {"127.0.0.1", port_}; }

  std::unique_ptr<LockstepProcess> start(int rank, const Settings& more = {}, const std::string& token = "") {
    Settings settings = {"train.steps=8", "strategy.leaves=4", "strategy.threads=1", "strategy.deadline=20"};
    settings.insert(settings.end(), more.begin(), more.end());
    Surroundings surroundings;
    surroundings.environment = {"RANK=" + std::to_string(rank),         "WORLD_SIZE=2",
                                "LOCAL_RANK=" + std::to_string(rank),   "LOCAL_WORLD_SIZE=2",
                                "MASTER_PORT=" + std::to_string(port_), "XDG_RUNTIME_DIR=" + tokens()};
    if (!token.empty()) surroundings.environment.push_back("LOCKSTEP_TOKEN=" + token);
    return std::make_unique<LockstepProcess>(job_.arguments("run", settings),
                                             job_.log("worker-" + std::to_string(rank)), surroundings);
  }

 private:
  std::string tokens() const { return job_.folder().path("tokens"); }

  TrainCase job_;
  int64_t port_;
};

TEST(MeetingFaults, WorkersStartedByHandGiveTheBitsOfOne) {
  TwoByHand two;
  const auto first = two.start(0), second = two.start(1);
  const Ended ended = first->wait();
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(second->wait().code, 0);
  const RunSummary one = two.job().trained("one", {"train.steps=8", "strategy.leaves=4"});
  EXPECT_EQ(two.job().summary("run").weights_sha256, one.weights_sha256);
  EXPECT_EQ(two.job().summary("run").workers, 2);
}

TEST(MeetingFaults, AWorkerThatNeverComesIsNamed) {
  TwoByHand two;
  const Ended first = two.start(0, {"strategy.deadline=0.5"})->wait();
  EXPECT_EQ(first.code, 1);
  expect_has(first.err, " s at the barrier 'join': 1 of 2 workers came; missing: worker-1");
  const Ended second = two.start(1, {"strategy.deadline=0.5"})->wait();
  EXPECT_EQ(second.code, 1);
  expect_has(second.err, "worker-1 found no worker-0 at " + to_string(two.address()) + " within 500 ms");
}

TEST(MeetingFaults, APortInUseIsNamed) {
  const Descriptor listener = listen_on({"127.0.0.1", 0});
  const std::string port = std::to_string(bound_port(listener));
  const TrainCase job(kGptJob);
  const Ended own = job.train("run", {}, {"--nproc-per-node", "2", "--master-port", port});
  EXPECT_EQ(own.code, 2);
  expect_has(own.err, "lockstep: port " + port + " of 127.0.0.1 is in use by another program");
  const Surroundings by_hand = {
      .environment = {"RANK=0", "WORLD_SIZE=2", "LOCAL_RANK=0", "LOCAL_WORLD_SIZE=2", "MASTER_PORT=" + port}};
  const Ended theirs = LockstepProcess(job.arguments("run", {}), job.log("theirs"), by_hand).wait();
  EXPECT_EQ(theirs.code, 2);
  expect_has(theirs.err, "choose a free one with --master-port or MASTER_PORT");
}

// Typically RANK, exported once for all tasks.
TEST(MeetingFaults, TwoLaunchersThatDisagreeAreBothPrinted) {
  const TrainCase job(kGptJob);
  const Surroundings both = {.environment = {"RANK=0", "WORLD_SIZE=4", "OMPI_COMM_WORLD_RANK=3",
                                             "OMPI_COMM_WORLD_SIZE=4", "OMPI_COMM_WORLD_LOCAL_RANK=3",
                                             "OMPI_COMM_WORLD_LOCAL_SIZE=4", "MASTER_ADDR=127.0.0.1"}};
  const Ended ended = LockstepProcess(job.arguments("run", {}), job.log("run"), both).wait();
  EXPECT_EQ(ended.code, 2);
  expect_has(ended.err,
             "torchrun (RANK=0 WORLD_SIZE=4) says worker 0 of 4, but OpenMPI "
             "(OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_SIZE=4) says worker 3 of 4");
}

TEST(MeetingFaults, APeerWithAnotherJobIsNamedWithTheKey) {
  TwoByHand two;
  const auto first = two.start(0), second = two.start(1, {"train.seed=6", "train.eval.every=5"});
  for (const auto& worker : {first.get(), second.get()}) {
    const Ended ended = worker->wait();
    EXPECT_EQ(ended.code, 2);
    expect_has(ended.err, "the workers are not about to run the same thing: train.eval.every: worker-1 on ");
    expect_has(ended.err, "; train.seed: worker-1 on ");
    expect_has(ended.err, " has 6, but worker-0 has 5; give all of them the same job file");
  }
  EXPECT_FALSE(two.job().has("run", "metrics.jsonl"));
}

// The peer says of itself what worker 0 says, in all but the version.
TEST(MeetingFaults, APeerWithAnotherVersionIsNamed) {
  TwoByHand two;
  const auto first = two.start(0, {}, kToken);
  StoreClient store(two.address(), kToken, "worker-1", kLong);
  const auto theirs = nlohmann::json::parse(store.get("join/00000000", kLong));
  WorkerFacts facts = {theirs.at("same"), {{"host", "elsewhere"}}};
  facts.same["version"] = "0.0.0";
  EXPECT_THROW(join(store, 1, 2, facts, kLong), UserError);
  const Ended ended = first->wait();
  EXPECT_EQ(ended.code, 2);
  expect_has(ended.err, fmt::format("version: worker-1 on elsewhere has 0.0.0, but worker-0 has {}; give all",
                                    kVersion));
}

TEST(MeetingFaults, StrangersDisturbNobody) {
  TwoByHand two;
  const auto first = two.start(0, {}, kToken);
  // Waits until worker 0 listens.
  EXPECT_THROW(StoreClient(two.address(), "another token, of 30 letters..", "worker-1", kLong), TokenRefused);
  const TimePoint soon = std::chrono::steady_clock::now() + kLong;
  const Descriptor half_open = connect_to(two.address(), soon);
  const Descriptor garbage = connect_to(two.address(), soon);
  const std::string_view request = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
  EXPECT_EQ(::send(garbage.get(), request.data(), request.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(request.size()));
  EXPECT_TRUE(wait_readable(garbage, soon));  // it is hung up on
  const auto second = two.start(1, {}, kToken);
  const Ended ended = first->wait();
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(second->wait().code, 0);
  expect_has(ended.err, "store: turned away a stranger at 127.0.0.1:");
  expect_has(ended.err, ": it has another token");
  const RunSummary one = two.job().trained("one", {"train.steps=8", "strategy.leaves=4"});
  EXPECT_EQ(two.job().summary("run").weights_sha256, one.weights_sha256);
}

}  // namespace
}  // namespace lockstep
