// What happens between hosts when one of them, or the network, fails: every host's launcher ends with code 1
// and names a worker of the host at fault, and no worker is left behind.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include "hosts/host_box.h"
#include "run/folder_events.h"
#include "run/train_case.h"

namespace lockstep {
namespace {

// Ends by itself only after more steps than any run here gets to do.
constexpr const char* kEndlessJob = R"(
name: gpt
model: {family: gpt, layers: 1, dim: 16, heads: 2, vocab: 32, seq: 8}
data: {train: {format: synthetic, samples: 100}, seed: 3}
train: {steps: 10000000, global_batch: 8, microbatch: 2, lr: {base: 1e-2}}
strategy: {leaves: 4, threads: 1}
)";

// A host's launcher, then the workers that it left on the host.
constexpr const char* kLaunch = R"sh(
"$@"
code=$?
for process in $(ip netns pids "$(hostname)");
do
  grep -qzx 'WORLD_SIZE=4' "/proc/$process/environ" 2>/dev/null && echo "left: $process"
done
exit $code
)sh";

// The process of the worker, wherever it is: hosts share process numbers.
constexpr const char* kSignalWorker = R"sh(
for process in /proc/[0-9]*; do
  grep -qzx "RANK=$2" "$process/environ" 2>/dev/null && exec kill "-$1" "${process#/proc/}"
done
exit 1
)sh";

class HostFaults : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto reason = why_no_hosts()) GTEST_SKIP() << *reason;
  }

  // Two hosts with workers 0, 1 and 2, 3, under way.
  void start(const std::string& deadline) {
    std::filesystem::create_directories(job_.output("run"));
    FolderEvents events(job_.output("run"));
    box_ = std::make_unique<HostBox>(HostOptions{.hosts = 2}, command(deadline), job_.log("run"));
    for (int writes = 0; writes < 5;) {
      const auto event = events.next(box_->process());
      ASSERT_TRUE(event) << "it ended by itself: " << box_->so_far(0).err << box_->so_far(1).err;
      writes += event->name == "metrics.jsonl" ? 1 : 0;
    }
  }

  std::vector<std::string> command(const std::string& deadline) const {
    std::vector<std::string> all = {
        "env",           "LOCKSTEP_TOKEN=0123456789abcdef0123456789abcdef", "bash", "-c", kLaunch, "launch",
        LOCKSTEP_PROGRAM};
    const auto train = job_.arguments(
        "run", {"strategy.deadline=" + deadline},
        {"--nnodes", "2", "--node-rank", "{host}", "--nproc-per-node", "2", "--master-addr", "{master}"});
    all.insert(all.end(), train.begin(), train.end());
    return all;
  }

  void signal_worker(const char* signal, int rank) {
    EXPECT_EQ(box_->at(1, {"bash", "-c", kSignalWorker, "signal", signal, std::to_string(rank)}), 0);
  }

  // Both hosts end with code 1 and nothing running; what each has said, by host.
  std::vector<std::string> verdicts() {
    std::vector<std::string> said;
    for (const Ended& ended : box_->wait()) {
      EXPECT_EQ(ended.code, 1) << ended.err;
      EXPECT_EQ(ended.out.find("left:"), std::string::npos) << ended.out;
      said.push_back(ended.err);
    }
    return said;
  }

  TrainCase job_{kEndlessJob};
  std::unique_ptr<HostBox> box_;
};

using HostFaultsLong = HostFaults;  // they wait for the deadline

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST_F(HostFaults, AWorkerOfAnotherHostIsKilled) {
  ASSERT_NO_FATAL_FAILURE(start("60"));
  signal_worker("KILL", 3);
  const std::vector<std::string> said = verdicts();
  EXPECT_TRUE(has(said[0], "(rank 3 is on host1)")) << said[0];
  EXPECT_TRUE(has(said[1], "worker-3 failed first: killed by SIGKILL")) << said[1];
}

TEST_F(HostFaultsLong, AWorkerOfAnotherHostStandsStill) {
  ASSERT_NO_FATAL_FAILURE(start("5"));
  signal_worker("STOP", 2);
  const std::vector<std::string> said = verdicts();
  EXPECT_TRUE(has(said[0], "(rank 2 is on host1)")) << said[0];
  EXPECT_TRUE(has(said[1], "worker-2 stood still")) << said[1];
}

// Each side of the cut cannot know more than that the other one is silent.
TEST_F(HostFaultsLong, ALinkIsCut) {
  ASSERT_NO_FATAL_FAILURE(start("5"));
  EXPECT_EQ(box_->at(1, {"ip", "link", "set", "eth0", "down"}), 0);
  const std::vector<std::string> said = verdicts();
  EXPECT_TRUE(has(said[0], "(rank 2 is on host1)") || has(said[0], "(rank 3 is on host1)")) << said[0];
  EXPECT_TRUE(has(said[1], "(rank 0 is on host0)") || has(said[1], "(rank 1 is on host0)")) << said[1];
}

}  // namespace
}  // namespace lockstep
