// For the tests of this folder: runs a body on every rank of a group over UCX on loopback, as processes.
//
// Ranks are processes, as UCX is meant to be used; nothing of it is touched before the fork.
#pragma once
#include "comm/ranks_testing.h"
#include "comm/ucx/local_exchange.h"
#include "comm/ucx/ucx_transport.h"

namespace lockstep::testing {

inline ucx::UcxOptions ucx_options(int deadline_ms = 20000) {
  ucx::UcxOptions options;
  options.limits.deadline = std::chrono::milliseconds(deadline_ms);
  options.meeting_deadline = std::chrono::milliseconds(20000);
  options.interface = "lo";
  return options;
}

// Forks a process that exits with 0, or with 1 if an expectation failed in it, or 99 after an exception.
inline Child fork_and_run(int rank, const std::function<void()>& body) {
  fflush(nullptr);  // or the child would print it again
  const pid_t pid = fork();
  if (pid != 0) return {pid};
  int code = 99;
  try {
    body();
    code = ::testing::Test::HasFailure() ? 1 : 0;
  } catch (const std::exception& error) {
    fprintf(stderr, "rank %d: %s\n", rank, error.what());
  }
  fflush(nullptr);
  _exit(code);
}

inline Child fork_ucx_rank(ucx::LocalExchange& exchange, int rank, int size, const ucx::UcxOptions& options,
                           const std::function<void(ucx::UcxTransport&)>& body) {
  return fork_and_run(rank, [&] {
    ucx::UcxTransport transport(rank, size, exchange.of(rank), options);
    body(transport);
  });
}

inline void on_ucx_ranks(int size, const std::function<void(ucx::UcxTransport&)>& body,
                         const ucx::UcxOptions& options = ucx_options()) {
  ucx::LocalExchange exchange(size);
  std::vector<Child> children;
  for (int rank = 0; rank < size; ++rank)
    children.push_back(fork_ucx_rank(exchange, rank, size, options, body));
  for (const Child& child : children) EXPECT_EQ(child.wait(), 0);
}

// The same with a group.
inline void on_ucx_groups(const LeafSplit& split, const Body& body,
                          const ucx::UcxOptions& options = ucx_options()) {
  ucx::LocalExchange exchange(split.ranks());
  std::vector<Child> children;
  for (int rank = 0; rank < split.ranks(); ++rank)
    children.push_back(fork_and_run(rank, [&] {
      Group group(ucx::join(rank, split.ranks(), exchange.of(rank), options), split);
      body(group);
    }));
  for (const Child& child : children) EXPECT_EQ(child.wait(), 0);
}

}  // namespace lockstep::testing
