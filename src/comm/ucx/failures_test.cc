// Ranks over UCX that die, stop, stray or leave: the others name them, and end.
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
void expect_culprit(const std::function<void(UcxTransport&)>& ending, const std::string& expected,
                    int deadline_ms) {
  ucx::LocalExchange exchange(3);
  const ucx::UcxOptions options = testing::ucx_options(deadline_ms);
  const auto witness = [&](UcxTransport& transport) {
    const std::string text = peer_error(1, [&] {
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

TEST(UcxFailures, PeerThatLeavesIsNamed) {
  expect_culprit([](UcxTransport&) {}, "rank 1 has left the group", 20000);
}

TEST(UcxFailures, VerdictReachesAll) {
  expect_culprit([](UcxTransport& transport) { transport.fail(1, "rank 1 has no more memory"); },
                 "rank 1 has no more memory", 20000);
}

}  // namespace
}  // namespace lockstep
