// For the tests of this folder: runs a body on every rank of a group, as threads or as processes.
#pragma once
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "comm/group.h"
#include "comm/peer_error.h"
#include "comm/shm/meeting.h"

namespace lockstep::testing {

inline shm::ShmOptions test_options(int deadline_ms = 20000) {
  shm::ShmOptions options;
  options.limits.deadline = std::chrono::milliseconds(deadline_ms);
  options.meeting_deadline = std::chrono::milliseconds(20000);
  options.arena_bytes = 64 << 20;
  return options;
}

using Body = std::function<void(Group&)>;

// Every rank's error, empty where there was none.
inline std::vector<std::exception_ptr> run_threads(const LeafSplit& split, const Body& body,
                                                   const shm::ShmOptions& options = test_options()) {
  shm::ThreadMeeting meeting(split.ranks());
  std::vector<std::exception_ptr> errors(static_cast<size_t>(split.ranks()));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < split.ranks(); ++rank)
    threads.emplace_back([&, rank] {
      try {
        Group group(meeting.join(rank, options), split);
        body(group);
      } catch (...) {
        errors[static_cast<size_t>(rank)] = std::current_exception();
      }
    });
  for (std::thread& thread : threads) thread.join();
  return errors;
}

inline void expect_no_errors(const std::vector<std::exception_ptr>& errors) {
  for (size_t rank = 0; rank < errors.size(); ++rank) {
    if (!errors[rank]) continue;
    try {
      std::rethrow_exception(errors[rank]);
    } catch (const std::exception& error) {
      ADD_FAILURE() << "rank " << rank << ": " << error.what();
    }
  }
}

// Runs a body on all ranks as threads; nothing may go wrong.
inline void on_threads(const LeafSplit& split, const Body& body) {
  expect_no_errors(run_threads(split, body));
}

struct Child {
  pid_t pid = -1;
  // Waits for the end; -SIGNAL if one ended it.
  int wait() const {
    int status = 0;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
};

// Forks a rank that exits with what the body returns; 99 after an exception.
inline Child fork_rank(const std::string& name, int rank, const LeafSplit& split,
                       const shm::ShmOptions& options, const std::function<int(Group&)>& body) {
  fflush(nullptr);  // or the child would print it again
  const pid_t pid = fork();
  if (pid != 0) return {pid};
  int code = 99;
  try {
    Group group(shm::join_processes(name, rank, split.ranks(), options), split);
    code = body(group);
  } catch (const std::exception& error) {
    fprintf(stderr, "rank %d: %s\n", rank, error.what());
  }
  _exit(code);
}

// The message of the PeerError that `body` must throw; `culprit` is whom it must name.
template <typename Action>
std::string peer_error(int culprit, const Action& action) {
  try {
    action();
  } catch (const PeerError& error) {
    EXPECT_EQ(error.peer(), culprit) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no PeerError";
  return {};
}

}  // namespace lockstep::testing
