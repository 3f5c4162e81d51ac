// A program, or Lockstep itself, as a child process: started with arguments, signalled, waited for. A child
// cannot outlive the test: it is killed with the object, with the test's process, and by its own alarm.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/file_descriptor.h"

namespace lockstep {

// How a process ended, and what it wrote.
struct Ended {
  int code = -1;   // -1: a signal ended it
  int signal = 0;  // 0: it ended by itself
  std::string out, err;
};

// In what surroundings a process runs.
struct Surroundings {
  // It may write files of at most so many bytes: what a full disk does.
  std::optional<uint64_t> file_limit = {};
  // NAME=value, beside what the test itself has.
  std::vector<std::string> environment = {};
  // The cgroup.procs of a control group that it enters; none if empty.
  std::string control_group = {};
  // Descriptors that take the place of its standard output and error; -1: <log>.out and <log>.err.
  int out = -1, err = -1;
  // Descriptors that are closed when it starts, and signals that it is told to ignore.
  std::vector<int> closed = {}, ignored = {};
};

class ChildProcess {
 public:
  // The program's path and its arguments. What it writes goes to <log>.out and <log>.err.
  ChildProcess(std::vector<std::string> command, std::string log, const Surroundings& surroundings = {});
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }
  void send(int signal) const;
  // Readable once the process has ended, for poll(2).
  int descriptor() const { return pidfd_.number(); }
  // Whether the signal was sent and nobody has taken it yet.
  bool pending(int signal) const;
  // How many of its threads could be interrupted by the signal.
  int64_t threads_open_to(int signal) const;
  Ended wait();

 private:
  std::string log_;
  pid_t pid_ = -1;
  FileDescriptor pidfd_;
};

class LockstepProcess : public ChildProcess {
 public:
  LockstepProcess(const std::vector<std::string>& arguments, std::string log,
                  const Surroundings& surroundings = {});
};

}  // namespace lockstep
