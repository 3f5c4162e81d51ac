#include "run/worker_hosts.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace lockstep {
namespace {

WorkerFacts on(const std::string& name, const std::string& key) {
  return {.same = {}, .own = {{"host", name}, {"host_key", key}}};
}

TEST(WorkerHosts, ThisProcessIsOnOneHostWithItself) {
  const WorkerFacts self{.same = {}, .own = host_facts()};
  EXPECT_EQ(host_map({self, self, self}).hosts(), 1);
}

TEST(WorkerHosts, NamespacesOfOneMachineAreHosts) {
  const wire::HostMap map =
      host_map({on("box", "box 1 net:[1]"), on("box", "box 1 net:[1]"), on("box", "box 1 net:[2]")});
  EXPECT_EQ(map.text(), "2 hosts with 2 + 1 ranks");
  EXPECT_EQ(map.name(0), "box");
  EXPECT_EQ(map.name(1), "box (2)");
}

TEST(WorkerHosts, CyclicRanksAreRefused) {
  EXPECT_THROW(host_map({on("a", "a"), on("b", "b"), on("a", "a"), on("b", "b")}), UserError);
}

TEST(WorkerHosts, SharedMemoryIsForOneHost) {
  require_one_host(host_map({on("a", "a"), on("a", "a")}), "shm");
  try {
    require_one_host(host_map({on("a", "a"), on("b", "b")}), "shm");
    FAIL();
  } catch (const UserError& error) {
    EXPECT_EQ(std::string(error.what()),
              "strategy.transport shm joins workers of one host, but there are 1 on a, 1 on b; use auto");
  }
}

TEST(WorkerHosts, TensorRanksAreOfOneHost) {
  const wire::HostMap map = host_map({on("a", "a"), on("a", "a"), on("b", "b"), on("b", "b")});
  require_tensor_hosts(map, {.data = 2, .tensor = 2});
  require_tensor_hosts(map, {.data = 4});
  try {
    require_tensor_hosts(map, {.tensor = 4});
    FAIL();
  } catch (const UserError& error) {
    EXPECT_EQ(
        std::string(error.what()),
        "strategy.tensor 4: ranks 1 and 2 share every matrix, but are on hosts a and b; start a multiple "
        "of 4 workers on each host, or use a strategy.tensor that divides the workers of each");
  }
}

}  // namespace
}  // namespace lockstep
