// Reduction Servers on hosts of their own, each started as another launcher would: the weights are those of
// one worker, and stay so when a server dies or its cable is cut in the middle of training.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include "hosts/host_box.h"
#include "run/folder_events.h"
#include "run/train_case.h"

namespace lockstep {
namespace {

constexpr const char* kJob = R"(
name: gpt
model: {family: gpt, layers: 2, dim: 64, heads: 4, vocab: 256, seq: 16}
data: {train: {format: synthetic, samples: 200}, seed: 3}
train: {steps: 30, global_batch: 8, microbatch: 1, lr: {base: 1e-2}, clip_norm: 1.0, seed: 5}
strategy: {leaves: 8, threads: 1, reduce: {bucket: 128KiB}}
)";

// The first hosts have workers, so many each; the others serve. The arguments: worker hosts, workers of each,
// this host, the master's address; then the program and the arguments of train.
constexpr const char* kStart = R"sh(
hosts=$1 each=$2 host=$3 master=$4 program=$5
shift 5
export LOCKSTEP_TOKEN=0123456789abcdef0123456789abcdef MASTER_ADDR=$master MASTER_PORT=29500
if ((host >= hosts)); then exec "$program" serve-reduce; fi
running=() worst=0
for ((i = 0; i < each; ++i)); do
  env RANK=$((host * each + i)) WORLD_SIZE=$((hosts * each)) LOCAL_RANK=$i LOCAL_WORLD_SIZE=$each \
    "$program" "$@" &
  running+=($!)
done
for process in "${running[@]}"; do
  code=0
  wait "$process" || code=$?
  ((code <= worst)) || worst=$code
done
exit "$worst"
)sh";

class ReductionHosts : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto reason = why_no_hosts()) GTEST_SKIP() << *reason;
  }

  std::vector<std::string> command(const std::string& run, int hosts, int each, int servers,
                                   std::vector<std::string> settings) const {
    settings.push_back("strategy.reduce.via=server");
    settings.push_back(fmt::format("strategy.reduce.servers={}", servers));
    std::vector<std::string> all = {
        "bash",   "-c",       kStart,          "start", std::to_string(hosts), std::to_string(each),
        "{host}", "{master}", LOCKSTEP_PROGRAM};
    const auto arguments = job_.arguments(run, settings);
    all.insert(all.end(), arguments.begin(), arguments.end());
    return all;
  }

  void expect_ended(HostBox& box) {
    const std::vector<Ended> ended = box.wait();
    for (size_t host = 0; host < ended.size(); ++host)
      EXPECT_EQ(ended[host].code, 0) << "host " << host << ": " << ended[host].err;
  }

  // Something happens to the first server in the middle of training.
  void expect_same_without_a_server(const std::vector<std::string>& what, bool it_ends) {
    const std::vector<std::string> longer = {"train.steps=80", "train.lr.decay=constant",
                                             "strategy.deadline=6"};
    const RunSummary one = job_.trained("one", longer);
    std::filesystem::create_directories(job_.output("run"));
    FolderEvents events(job_.output("run"));
    HostBox box({.hosts = 5}, command("run", 3, 1, 2, longer), job_.log("run"));
    for (int writes = 0; writes < 5;) {
      const auto event = events.next(box.process());
      ASSERT_TRUE(event) << "it ended by itself: " << box.so_far(0).err;
      writes += event->name == "metrics.jsonl" ? 1 : 0;
    }
    box.at(3, what);
    // A server that has lost its workers waits for others; it ends with the box.
    while (!job_.has("run", "summary.json") && events.next(box.process())) {
    }
    const RunSummary summary = job_.summary("run");
    EXPECT_EQ(summary.status, "done") << box.so_far(0).err;
    EXPECT_EQ(summary.weights_sha256, one.weights_sha256);
    ASSERT_TRUE(summary.reduction);
    EXPECT_EQ(summary.reduction->servers_left, 1);
    EXPECT_GE(summary.reduction->fallbacks, 1);
    EXPECT_NE(box.so_far(0).err.find("with the same bits"), std::string::npos) << box.so_far(0).err;
    if (it_ends) expect_only_killed(box);
  }

  void expect_only_killed(HostBox& box) {
    const std::vector<Ended> ended = box.wait();
    for (const int host : {0, 1, 2, 4})
      EXPECT_EQ(ended[static_cast<size_t>(host)].code, 0) << "host " << host;
  }

  TrainCase job_{kJob};
};

TEST_F(ReductionHosts, WeightsAreThoseOfOneWorker) {
  const RunSummary one = job_.trained("one");
  struct Layout {
    int hosts, each, servers;
  };
  for (const Layout layout : {Layout{3, 1, 1}, Layout{2, 2, 2}}) {
    const std::string run =
        fmt::format("{}-hosts-of-{}-servers-{}", layout.hosts, layout.each, layout.servers);
    SCOPED_TRACE(run);
    HostBox box({.hosts = layout.hosts + layout.servers},
                command(run, layout.hosts, layout.each, layout.servers, {"strategy.deadline=30"}),
                job_.log(run));
    expect_ended(box);
    const RunSummary summary = job_.summary(run);
    EXPECT_EQ(summary.weights_sha256, one.weights_sha256);
    ASSERT_TRUE(summary.reduction);
    EXPECT_EQ(summary.reduction->streams, layout.hosts) << "one stream a host";
    EXPECT_EQ(summary.reduction->fallbacks, 0);
    // A host sends every gradient once, whoever of its workers carries it.
    const double gradients = 4.0 * static_cast<double>(one.parameters) * 30 / layout.each;
    EXPECT_LT(static_cast<double>(summary.reduction->bytes_received), 1.2 * gradients);  // blocks are padded
  }
}

TEST_F(ReductionHosts, AKilledServerChangesNoBit) {
  expect_same_without_a_server({"bash", "-c",
                                "for p in $(ip netns pids $(hostname)); do grep -qz 'serve-[r]educe' "
                                "/proc/$p/cmdline && kill -9 $p; done"},
                               true);
}

TEST_F(ReductionHosts, AServerWhoseCableIsCutIsDoneWithout) {
  expect_same_without_a_server({"ip", "link", "set", "eth0", "down"}, false);
}

TEST_F(ReductionHosts, WorkersSayHowManyServersHaveNotCome) {
  HostBox box({.hosts = 3}, command("run", 2, 1, 2, {"strategy.deadline=2"}), job_.log("run"));
  // The one server that came waits for a run that does not begin.
  const auto told = [&] {
    return box.so_far(0).err.find("strategy.reduce.servers is 2, and 1 have come") != std::string::npos;
  };
  for (int look = 0; look < 200 && !told(); ++look) box.at(0, {"sleep", "0.1"});
  EXPECT_TRUE(told()) << box.so_far(0).err;
}

}  // namespace
}  // namespace lockstep
