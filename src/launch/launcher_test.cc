#include "launch/launcher.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/test_folder.h"

namespace lockstep {
namespace {

std::string text(const Nodes& nodes) {
  return fmt::format("{}/{} x {} at {}:{}", nodes.rank, nodes.count, nodes.workers_per_node,
                     nodes.master.host, nodes.master.port);
}

std::string error_of(const NodeFlags& flags, int64_t workers) {
  try {
    return text(nodes_from(flags, workers));
  } catch (const UserError& error) {
    return error.what();
  }
}

TEST(Launcher, NodesFollowFromFlags) {
  EXPECT_EQ(error_of({}, 0), "0/1 x 1 at 127.0.0.1:0");
  EXPECT_EQ(error_of({}, 4), "0/1 x 4 at 127.0.0.1:0");
  EXPECT_EQ(error_of({.nproc_per_node = 3}, 0), "0/1 x 3 at 127.0.0.1:0");
  const NodeFlags two = {.nnodes = 2, .node_rank = 1, .master_addr = "a"};
  EXPECT_EQ(error_of(two, 8), "1/2 x 4 at a:29500");
  EXPECT_EQ(error_of(two, 3), "strategy.workers 3 is not a multiple of --nnodes 2");
  EXPECT_EQ(error_of({.nnodes = 2}, 8),
            "--nnodes 2 needs --node-rank; give every host its own --node-rank, and all the --master-addr of "
            "host 0");
  EXPECT_EQ(error_of({.nnodes = 2, .node_rank = 2}, 8), "--node-rank 2 is not a number from 0 to 1");
  EXPECT_EQ(error_of({.nproc_per_node = 3}, 4),
            "strategy.workers is 4, but --nnodes 1 times --nproc-per-node 3 is 3; make them equal");
}

TEST(Launcher, FlagsComeFromKubeflowToo) {
  const Variables kubeflow = {{"PET_NNODES", "2"},
                              {"PET_NODE_RANK", "1"},
                              {"PET_NPROC_PER_NODE", "auto"},
                              {"PET_MASTER_ADDR", "job-0"},
                              {"PET_MASTER_PORT", "29400"}};
  EXPECT_EQ(text(nodes_from(with_environment({}, kubeflow), 4)), "1/2 x 2 at job-0:29400");
  EXPECT_EQ(text(nodes_from(with_environment({.node_rank = 0, .master_addr = "b"}, kubeflow), 4)),
            "0/2 x 2 at b:29400");
}

TEST(Launcher, WorkersFindTheStore) {
  TestFolder folder;
  LaunchRequest request;
  request.nodes.workers_per_node = 2;
  // Connects to the store's port, which only answers once it is greeted.
  request.command = {"/bin/bash", "-c",
                     "exec 3<>/dev/tcp/${LOCKSTEP_STORE/://} && [ ${#LOCKSTEP_TOKEN} = 32 ]"};
  request.run_id = "test";
  request.log_folder = folder.path("logs");
  request.inherited = {{"PATH", "/usr/bin:/bin"}};
  const WorkerSetResult result = launch(request);
  EXPECT_EQ(result.exit_code, 0) << (result.first_failure ? describe(*result.first_failure) : "");
}

TEST(Launcher, SeveralHostsNeedAToken) {
  LaunchRequest request;
  request.nodes.count = 2;
  request.inherited = {};
  EXPECT_THROW(launch(request), UserError);
}

}  // namespace
}  // namespace lockstep
