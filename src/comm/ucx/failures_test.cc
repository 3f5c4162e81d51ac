// Ranks over UCX that die, stop, stray or leave: the others name them, and end.
#include <netinet/in.h>
#include <sys/socket.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <thread>

#include "comm/ucx/ranks_testing.h"

namespace lockstep {
namespace {

using testing::Child;
using testing::peer_error;
using ucx::UcxTransport;

void pass_token(UcxTransport& transport) {
  std::byte token{1};
  const int next = (transport.rank() + 1) % transport.size();
  const int previous = (transport.rank() + transport.size() - 1) % transport.size();
  const auto received = transport.start_receive(previous, {&token, 1});
  std::byte own{2};
  const auto sent = transport.start_send(next, {&own, 1});
  transport.wait(*received);
  transport.wait(*sent);
}

// Rank 1 ends in `ending` after a round of messages; the others wait for more, must name it, and end.
// All are called what the line calls them.
void expect_culprit(const std::function<void(UcxTransport&)>& ending, const std::string& expected,
                    int deadline_ms, const RankLine& line = {0, 1, 3}) {
  ucx::LocalExchange exchange(3);
  ucx::UcxOptions options = testing::ucx_options(deadline_ms);
  options.first_rank = line.first;
  options.rank_stride = line.stride;
  const auto witness = [&](UcxTransport& transport) {
    const std::string text = peer_error(line.number(1), [&] {
      while (true) pass_token(transport);
    });
    EXPECT_NE(text.find(expected), std::string::npos) << text;
  };
  const Child culprit = testing::fork_ucx_rank(exchange, 1, 3, options, [&](UcxTransport& transport) {
    pass_token(transport);
    ending(transport);
  });
  const Child first = testing::fork_ucx_rank(exchange, 0, 3, options, witness);
  const Child second = testing::fork_ucx_rank(exchange, 2, 3, options, witness);
  EXPECT_EQ(first.wait(), 0);
  EXPECT_EQ(second.wait(), 0);
  kill(culprit.pid, SIGKILL);
  culprit.wait();
}

TEST(UcxFailures, KilledPeerIsNamed) {
  expect_culprit([](UcxTransport&) { raise(SIGKILL); }, "rank 1 (pid ", 20000);
}

TEST(UcxFailures, ExitWithoutGoodbyeIsNamed) {
  expect_culprit([](UcxTransport&) { _exit(3); }, "has died or lost its connection", 20000);
}

TEST(UcxFailures, StoppedPeerIsNamedAtTheDeadline) {
  expect_culprit([](UcxTransport&) { raise(SIGSTOP); }, "for rank 1", 400);
}

TEST(UcxFailures, RanksOfALineAreNamedByTheirNumbers) {
  const RankLine line{3, 2, 3};
  expect_culprit([](UcxTransport&) { raise(SIGKILL); }, "rank 5 (pid ", 20000, line);
  expect_culprit([](UcxTransport&) { raise(SIGSTOP); }, "for rank 5", 400, line);
}

TEST(UcxFailures, PeerThatLeavesIsNamed) {
  expect_culprit([](UcxTransport&) {}, "rank 1 has left the group", 20000);
}

TEST(UcxFailures, VerdictReachesAll) {
  expect_culprit([](UcxTransport& transport) { transport.fail(1, "rank 1 has no more memory"); },
                 "rank 1 has no more memory", 20000);
}

TEST(UcxFailures, InterfaceThatIsNotThereIsNamed) {
  const Child child = testing::fork_and_run(0, [] {
    ucx::UcxOptions options = testing::ucx_options();
    options.interface = "nowhere0";
    try {
      ucx::join(
          0, 1, [](const std::string& own) { return std::vector{own}; }, options);
      ADD_FAILURE() << "joined";
    } catch (const UserError& error) {
      EXPECT_NE(std::string(error.what()).find("nowhere0"), std::string::npos) << error.what();
    }
  });
  EXPECT_EQ(child.wait(), 0);
}

TEST(UcxFailures, PeerThatCannotBeReachedIsNamed) {
  ucx::LocalExchange exchange(2);
  ucx::UcxOptions options = testing::ucx_options();
  options.meeting_deadline = std::chrono::milliseconds(300);
  // Rank 1 shows its address and goes.
  const Child gone = testing::fork_and_run(1, [&] {
    const ucx::Worker worker(options);
    const ucx::Exchange show = exchange.of(1);
    show("node-b\n4242\n" + worker.address());
  });
  const Child child = testing::fork_and_run(0, [&] {
    // UCX itself fails an assertion now and then where a peer goes while it is being connected to.
    const auto when_gone = [show = exchange.of(0)](const std::string& own) {
      auto all = show(own);
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      return all;
    };
    const std::string text = peer_error(1, [&] { ucx::join(0, 2, when_gone, options); });
    EXPECT_NE(text.find("rank 1 (pid 4242 on node-b) cannot be reached from rank 0"), std::string::npos)
        << text;
  });
  EXPECT_EQ(child.wait(), 0);
  EXPECT_EQ(gone.wait(), 0);
}

// The ports at which this process listens on IPv4.
std::vector<int> listening_ports() {
  std::set<std::string> own;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const std::string target = std::filesystem::read_symlink(entry.path(), gone).string();
    if (target.starts_with("socket:[")) own.insert(target.substr(8, target.size() - 9));
  }
  std::vector<int> ports;
  std::ifstream sockets("/proc/self/net/tcp");
  std::string line;
  std::getline(sockets, line);
  while (std::getline(sockets, line)) {
    std::istringstream fields(line);
    std::string slot, local, remote, state, word, inode;
    fields >> slot >> local >> remote >> state;
    for (int skipped = 0; skipped < 5; ++skipped) fields >> word;
    fields >> inode;
    if (state == "0A" && own.contains(inode))
      ports.push_back(std::stoi(local.substr(local.find(':') + 1), nullptr, 16));
  }
  return ports;
}

TEST(UcxFailures, StrangerAtThePortChangesNothing) {
  testing::on_ucx_ranks(2, [](UcxTransport& transport) {
    pass_token(transport);
    const std::vector<int> ports = listening_ports();
    EXPECT_FALSE(ports.empty());
    for (const int port : ports) {
      const shm::Fd stranger(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      sockaddr_in address{};
      address.sin_family = AF_INET;
      address.sin_port = htons(static_cast<uint16_t>(port));
      address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      ASSERT_EQ(connect(stranger.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
      const std::string nonsense(300, 'x');
      EXPECT_EQ(send(stranger.get(), nonsense.data(), nonsense.size(), MSG_NOSIGNAL),
                static_cast<ssize_t>(nonsense.size()));
      for (int turn = 0; turn < 100; ++turn) pass_token(transport);
    }
    pass_token(transport);
  });
}

}  // namespace
}  // namespace lockstep
