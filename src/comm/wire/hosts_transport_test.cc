// What is said when something goes wrong between hosts: who, by the number among all ranks, and where.
#include "comm/wire/hosts_transport.h"

#include <gtest/gtest.h>

#include <latch>

#include "comm/wire/wire_testing.h"

namespace lockstep {
namespace {

using testing::peer_error;
using testing::run_hosts;

TEST(HostMap, SaysWhoIsWhere) {
  const wire::HostMap map({"a", "a", "b", "c", "c", "c"});
  EXPECT_EQ(map.text(), "3 hosts with 2 + 1 + 3 ranks");
  EXPECT_EQ(map.host_of(4), 2);
  EXPECT_EQ(map.local_rank(4), 1);
  EXPECT_EQ(map.first(2), 3);
  EXPECT_TRUE(map.shares());
  EXPECT_FALSE(wire::HostMap::one_each(4).shares());
}

TEST(HostMap, RanksOfAHostMustBeNeighbours) {
  try {
    const wire::HostMap map({"a", "b", "a", "b"});
    FAIL() << map.text();
  } catch (const UserError& error) {
    EXPECT_EQ(std::string(error.what()),
              "ranks 0 and 2 are on a, but ranks between them are not; number the ranks host by host (Slurm: "
              "--distribution=block, OpenMPI: --map-by slot)");
  }
}

TEST(HostsTransport, EachHostHasMemoryOfItsOwn) {
  run_hosts({2, 1}, LeafSplit::one_each(3), [](Group& group) {
    const HostBuffer buffer = group.allocate_for_host(2 * sizeof(int));
    int* const numbers = reinterpret_cast<int*>(buffer.data());
    const HostPlace place = *group.host();
    EXPECT_EQ(place.count, group.rank() < 2 ? 2 : 1);
    numbers[place.index] = group.rank() + 1;
    group.host_barrier();
    EXPECT_EQ(std::vector<int>(numbers, numbers + 2),
              group.rank() < 2 ? std::vector<int>({1, 2}) : std::vector<int>({3, 0}));
  });
}

TEST(HostsTransport, DifferentCallsOfNeighboursAreFoundOut) {
  for (const int64_t count : {100, 100000})
    run_hosts({2, 2}, LeafSplit::one_each(4), [&](Group& group) {
      SharedBuffer buffer = group.allocate(count * 4);
      void* const pointer = buffer.data();
      try {
        if (group.rank() == 3)
          group.all_gather({pointer, count, 4});
        else
          group.all_reduce({SumType::kF32, count, {&pointer, 1}});
        group.barrier();
        ADD_FAILURE() << "rank " << group.rank() << " noticed nothing";
      } catch (const PeerError& error) {
        const std::string text = error.what();
        EXPECT_TRUE(error.peer() == 2 || error.peer() == 3) << text;
        EXPECT_NE(text.find("are not in the same operation; rank "), std::string::npos) << text;
        EXPECT_NE(text.find("is on node1)"), std::string::npos) << text;
      }
    });
}

TEST(HostsTransport, DeadlineNamesTheRankAndItsHost) {
  for (const int silent : {1, 3}) {
    std::latch given_up(3);
    const auto body = [&](Group& group) {
      group.barrier();
      if (group.rank() == silent) return given_up.wait();
      std::vector<float> data(10);
      void* const pointer = data.data();
      const std::string text = peer_error(silent, [&] {
        group.all_reduce({SumType::kF32, 10, {&pointer, 1}});
      });
      EXPECT_NE(text.find(silent == 1 ? "(rank 1 is on node0)" : "(rank 3 is on node1)"), std::string::npos)
          << text;
      EXPECT_NE(text.find(fmt::format("rank {} finished barrier #1", silent)), std::string::npos) << text;
      given_up.count_down();
    };
    testing::expect_no_errors(run_hosts({2, 2}, LeafSplit::one_each(4), body, testing::test_options(300)));
  }
}

TEST(HostsTransport, OneThatHasLeftIsNamed) {
  run_hosts({2, 1}, LeafSplit::one_each(3), [](Group& group) {
    group.barrier("together");
    if (group.rank() == 1) return;
    const std::string text = peer_error(1, [&] { group.barrier("alone"); });
    EXPECT_NE(text.find("rank 1 has left the group"), std::string::npos) << text;
  });
}

}  // namespace
}  // namespace lockstep
