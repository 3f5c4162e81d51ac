// One worker as a child process, in a process group of its own so that a terminal's Ctrl-C reaches it once,
// through the launcher. It dies with the thread that started it, whatever ends that (PR_SET_PDEATHSIG), and
// whatever it has started itself dies with it. Only this one child and its group are ever signalled, and only
// while its number cannot have been given to another process.
#pragma once
#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "launch/descriptor.h"
#include "launch/ending.h"
#include "launch/variables.h"

namespace lockstep {

class WorkerProcess {
 public:
  // The first argument is the program, looked up in PATH. UserError when it cannot be started.
  WorkerProcess(const std::vector<std::string>& arguments, const Variables& variables);
  // Kills it if it still runs.
  ~WorkerProcess();
  WorkerProcess(WorkerProcess&&) noexcept = default;
  WorkerProcess& operator=(WorkerProcess&&) = delete;

  // Once it has ended; from then on always.
  std::optional<Ending> ending();
  // Does nothing once it has ended.
  void send(int signal);
  // Stopped by SIGSTOP or a debugger.
  bool stopped() const;

  pid_t pid() const { return child_.pid; }
  // Readable when it has ended; none on kernels that do not have it.
  const Descriptor& ended() const { return ended_; }
  // The reading ends of its standard output and error, non-blocking.
  Descriptor& out() { return out_; }
  Descriptor& err() { return err_; }

 private:
  // Not reaped before its ending is known.
  struct Child {
    Child() = default;
    Child(Child&& other) noexcept : pid(std::exchange(other.pid, 0)) {}
    pid_t pid = 0;
  };

  Child child_;
  Descriptor ended_;
  Descriptor out_;
  Descriptor err_;
  std::optional<Ending> ending_;
};

}  // namespace lockstep
