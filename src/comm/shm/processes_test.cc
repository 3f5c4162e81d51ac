// Ranks that are processes: they meet, they die, and nothing is left.
#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "comm/ranks_testing.h"
#include "comm/tree_testing.h"

namespace lockstep {
namespace {

using testing::Child;
using testing::fork_rank;
using testing::peer_error;

int sums_right(Group& group, int64_t count) {
  auto sums = testing::partial_sums<float>(group.split(), group.rank(), count);
  std::vector<SharedBuffer> buffers;
  std::vector<void*> pointers;
  for (const auto& sum : sums) {
    buffers.push_back(group.allocate(count * 4));
    std::memcpy(buffers.back().data(), sum.data(), sum.size() * 4);
    pointers.push_back(buffers.back().data());
  }
  group.all_reduce({SumType::kF32, count, pointers});
  return testing::same_bits(buffers[0].as<float>(),
                            testing::expected_root<float>(group.split().leaves(), count))
             ? 0
             : 1;
}

TEST(Processes, GiveTheBitsOfOneRank) {
  for (const int ranks : {1, 2, 3, 5, 8}) {
    const LeafSplit split = LeafSplit::search(16, ranks);
    const std::string name = shm::random_meeting_name();
    std::vector<Child> children;
    for (int rank = 0; rank < ranks; ++rank)
      children.push_back(fork_rank(name, rank, split, testing::test_options(), [](Group& group) {
        return sums_right(group, 100) + sums_right(group, 50000);
      }));
    for (const Child& child : children) EXPECT_EQ(child.wait(), 0) << split.text();
  }
}

// Rank 1 ends in `ending` once all have met; the others must name it, and end.
void expect_culprit(const std::function<int(Group&)>& ending, const std::string& expected, int deadline_ms,
                    const std::function<void(const Child&)>& meanwhile = {}) {
  const LeafSplit split = LeafSplit::one_each(3);
  const std::string name = shm::random_meeting_name();
  const shm::ShmOptions options = testing::test_options(deadline_ms);
  const auto witness = [&](Group& group) {
    group.barrier("all here");
    const std::string text = peer_error(1, [&] {
      while (true) group.barrier("step");
    });
    EXPECT_NE(text.find(expected), std::string::npos) << text;
    return ::testing::Test::HasFailure() ? 1 : 0;
  };
  const Child culprit = fork_rank(name, 1, split, options, [&](Group& group) {
    group.barrier("all here");
    return ending(group);
  });
  const Child first = fork_rank(name, 0, split, options, witness);
  const Child second = fork_rank(name, 2, split, options, witness);
  if (meanwhile) meanwhile(culprit);
  EXPECT_EQ(first.wait(), 0);
  EXPECT_EQ(second.wait(), 0);
  kill(culprit.pid, SIGKILL);
  culprit.wait();
}

TEST(Processes, KilledPeerIsNamed) {
  expect_culprit([](Group&) { return raise(SIGKILL); }, "rank 1 (pid ", 20000);
}

TEST(Processes, ExitWithoutGoodbyeIsNamed) {
  expect_culprit(
      [](Group&) {
        _exit(3);
        return 0;
      },
      "has died; before that, rank 1 finished barrier #1 (all here, 0 B)", 20000);
}

TEST(Processes, StoppedPeerIsNamedAtTheDeadline) {
  expect_culprit([](Group&) { return raise(SIGSTOP); },
                 "for rank 1; rank 1 is stopped (SIGSTOP); it finished barrier #1 (all here", 300);
}

TEST(Processes, PeerThatLeavesIsNamed) {
  expect_culprit([](Group&) { return 0; }, "has left the group", 20000);
}

TEST(Processes, RankThatDoesNotComeIsNamed) {
  shm::ShmOptions options = testing::test_options();
  options.meeting_deadline = std::chrono::milliseconds(200);
  const std::string host =
      peer_error(1, [&] { shm::join_processes(shm::random_meeting_name(), 0, 3, options); });
  EXPECT_NE(host.find("rank 1, 2 did not come"), std::string::npos) << host;
  const std::string guest =
      peer_error(0, [&] { shm::join_processes(shm::random_meeting_name(), 1, 3, options); });
  EXPECT_NE(guest.find("rank 0 did not open the meeting"), std::string::npos) << guest;
}

TEST(Processes, GroupOfAnotherSizeIsRefused) {
  const std::string name = shm::random_meeting_name();
  const Child other =
      fork_rank(name, 1, LeafSplit::one_each(3), testing::test_options(), [](Group&) { return 0; });
  const std::string text = peer_error(1, [&] { shm::join_processes(name, 0, 2, testing::test_options()); });
  EXPECT_NE(text.find("belongs to a group of 3; this group has 2 ranks"), std::string::npos) << text;
  EXPECT_EQ(other.wait(), 99);
}

// A stranger who connects first and talks nonsense, or says nothing, does not keep the ranks from meeting.
TEST(Processes, StrangerIsTurnedAway) {
  const LeafSplit split = LeafSplit::one_each(2);
  const std::string name = shm::random_meeting_name();
  const Child host = fork_rank(name, 0, split, testing::test_options(), [](Group& group) {
    group.barrier();
    return 0;
  });
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string full = "lockstep-" + name;
  std::memcpy(address.sun_path + 1, full.data(), full.size());
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + full.size());
  const shm::Fd stranger(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  while (connect(stranger.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0)
    std::this_thread::yield();
  ASSERT_EQ(send(stranger.get(), "hello", 5, MSG_NOSIGNAL), 5);
  const Child guest = fork_rank(name, 1, split, testing::test_options(), [](Group& group) {
    group.barrier();
    return 0;
  });
  EXPECT_EQ(host.wait(), 0);
  EXPECT_EQ(guest.wait(), 0);
}

TEST(Processes, LeaveNothingBehind) {
  const auto shared_files = [] {
    size_t count = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/dev/shm")) ++count;
    return count;
  };
  const size_t before = shared_files();
  const std::string name = shm::random_meeting_name();
  const LeafSplit split = LeafSplit::one_each(2);
  const auto die = [](Group& group) {
    group.barrier();
    return raise(SIGKILL);
  };
  const Child first = fork_rank(name, 0, split, testing::test_options(), die);
  const Child second = fork_rank(name, 1, split, testing::test_options(), die);
  first.wait();
  second.wait();
  EXPECT_EQ(shared_files(), before);
  std::ifstream sockets("/proc/net/unix");
  for (std::string line; std::getline(sockets, line);) EXPECT_EQ(line.find(name), std::string::npos) << line;
}

}  // namespace
}  // namespace lockstep
