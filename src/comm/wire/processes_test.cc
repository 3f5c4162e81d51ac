// Hosts that are pretended by processes: those of a host share memory, UCX on loopback joins the hosts.
#include <sys/wait.h>

#include "comm/tree_testing.h"
#include "comm/ucx/ranks_testing.h"
#include "comm/wire/wire_testing.h"

namespace lockstep {
namespace {

using testing::Child;
using testing::peer_error;

class HostsOverUcx : public ::testing::Test {
 protected:
  // Forks all ranks; every one must end well but those that `body` ends otherwise.
  std::vector<Child> start(const std::vector<int>& sizes, const LeafSplit& split, const testing::Body& body,
                           int deadline_ms = 20000) {
    const wire::HostMap map = testing::hosts_of(sizes);
    exchange_.emplace(map.ranks());
    std::vector<std::string> names;
    for (size_t host = 0; host < sizes.size(); ++host) names.push_back(shm::random_meeting_name());
    std::vector<Child> children;
    for (int rank = 0; rank < map.ranks(); ++rank)
      children.push_back(testing::fork_and_run(rank, [&] {
        const int host = map.host_of(rank);
        shm::ShmOptions options = testing::test_options(deadline_ms);
        options.first_rank = map.first(host);
        auto local = shm::join_processes(names[static_cast<size_t>(host)], map.local_rank(rank),
                                         map.size(host), options);
        auto between = ucx::join(rank, map.ranks(), exchange_->of(rank), testing::ucx_options(deadline_ms));
        Group group(std::make_unique<wire::HostsTransport>(map, std::move(local), std::move(between)), split);
        body(group);
      }));
    return children;
  }

 private:
  std::optional<ucx::LocalExchange> exchange_;
};

void check_all_reduce(Group& group, int64_t count) {
  auto sums = testing::partial_sums<float>(group.split(), group.rank(), count);
  std::vector<SharedBuffer> buffers;
  std::vector<void*> pointers;
  for (const auto& sum : sums) {
    buffers.push_back(group.allocate(count * 4));
    std::memcpy(buffers.back().data(), sum.data(), sum.size() * 4);
    pointers.push_back(buffers.back().data());
  }
  group.all_reduce({SumType::kF32, count, pointers});
  EXPECT_TRUE(testing::same_bits(buffers[0].as<float>(),
                                 testing::expected_root<float>(group.split().leaves(), count)))
      << count;
}

TEST_F(HostsOverUcx, GiveTheBitsOfOneRank) {
  for (const std::vector<int>& sizes : {std::vector{2, 2}, std::vector{2, 1}, std::vector{1, 1, 2}}) {
    const auto children =
        start(sizes, LeafSplit::search(8, testing::hosts_of(sizes).ranks()), [](Group& group) {
          for (const int64_t count : {1, 9000, 50000, 400003}) check_all_reduce(group, count);
          group.barrier();
        });
    for (const Child& child : children) EXPECT_EQ(child.wait(), 0);
  }
}

// Rank 3 of two hosts with two ranks each; all others must name it.
TEST_F(HostsOverUcx, WhoDiesOrStopsIsNamedOnAllHosts) {
  for (const int signal : {SIGKILL, SIGSTOP}) {
    const int deadline_ms = signal == SIGSTOP ? 600 : 20000;
    const auto children = start(
        {2, 2}, LeafSplit::one_each(4),
        [&](Group& group) {
          const std::string text = peer_error(3, [&] {
            check_all_reduce(group, 10);
            if (group.rank() == 3) raise(signal);
            while (true) check_all_reduce(group, 10);
          });
          EXPECT_NE(text.find("(rank 3 is on node1)"), std::string::npos) << text;
        },
        deadline_ms);
    for (const int rank : {0, 1, 2}) EXPECT_EQ(children[static_cast<size_t>(rank)].wait(), 0) << rank;
    kill(children[3].pid, SIGKILL);
    children[3].wait();
  }
}

}  // namespace
}  // namespace lockstep
