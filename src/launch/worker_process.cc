#include "launch/worker_process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/error.h"
#include "base/process_state.h"

namespace lockstep {
namespace {

struct Pipe {
  Descriptor read, write;
};

Pipe make_pipe() {
  int ends[2] = {-1, -1};
  if (pipe2(ends, O_CLOEXEC) != 0) throw DeviceError("pipe: {}", std::strerror(errno));
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

// argv or environ for exec: pointers into strings that outlive it.
std::vector<char*> pointers_to(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& string : strings) pointers.push_back(string.data());
  pointers.push_back(nullptr);
  return pointers;
}

struct ChildSetup {
  pid_t parent;
  int input, out, err, failure;
  char* const* arguments;
  char* const* environment;
};

// In the child, between fork and exec: only what is allowed there while other threads may have held locks.
[[noreturn]] void become_worker(const ChildSetup& setup) {
  const auto fail = [&] {
    const int error = errno;
    [[maybe_unused]] const ssize_t written = write(setup.failure, &error, sizeof error);
    _exit(127);
  };
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // It may have died before the line above.
  if (getppid() != setup.parent) _exit(127);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  for (const int signal : {SIGINT, SIGTERM, SIGPIPE, SIGQUIT}) ::signal(signal, SIG_DFL);
  if (dup2(setup.input, STDIN_FILENO) < 0 || dup2(setup.out, STDOUT_FILENO) < 0 ||
      dup2(setup.err, STDERR_FILENO) < 0)
    fail();
  execvpe(setup.arguments[0], setup.arguments, setup.environment);
  fail();
  _exit(127);
}

// 0 when exec went well, which closes the pipe.
int read_failure(const Descriptor& failure) {
  int error = 0;
  ssize_t got = 0;
  do got = read(failure.get(), &error, sizeof error);
  while (got < 0 && errno == EINTR);
  return got == static_cast<ssize_t>(sizeof error) ? error : 0;
}

void do_not_block(const Descriptor& descriptor) { fcntl(descriptor.get(), F_SETFL, O_NONBLOCK); }

}  // namespace

WorkerProcess::WorkerProcess(const std::vector<std::string>& arguments, const Variables& variables) {
  LOCKSTEP_CHECK(!arguments.empty(), "a worker without a command");
  std::vector<std::string> words = arguments;
  std::vector<std::string> entries;
  for (const auto& [name, value] : variables) entries.push_back(fmt::format("{}={}", name, value));
  const std::vector<char*> argument_pointers = pointers_to(words);
  const std::vector<char*> entry_pointers = pointers_to(entries);
  const Descriptor nothing(open("/dev/null", O_RDONLY | O_CLOEXEC));
  Pipe out = make_pipe();
  Pipe err = make_pipe();
  Pipe failure = make_pipe();
  const ChildSetup setup = {getpid(),
                            nothing.get(),
                            out.write.get(),
                            err.write.get(),
                            failure.write.get(),
                            argument_pointers.data(),
                            entry_pointers.data()};

  const pid_t pid = fork();
  if (pid < 0) throw DeviceError("fork: {}", std::strerror(errno));
  if (pid == 0) become_worker(setup);
  child_.pid = pid;
  failure.write.reset();
  if (const int error = read_failure(failure.read); error != 0) {
    waitpid(pid, nullptr, 0);
    throw UserError("cannot start {}: {}", arguments[0], std::strerror(error));
  }
  ended_ = Descriptor(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  out_ = std::move(out.read);
  err_ = std::move(err.read);
  do_not_block(out_);
  do_not_block(err_);
}

WorkerProcess::~WorkerProcess() {
  if (child_.pid == 0 || ending_) return;
  kill(child_.pid, SIGKILL);
  siginfo_t info{};
  while (waitid(P_PID, static_cast<id_t>(child_.pid), &info, WEXITED | WNOWAIT) != 0 && errno == EINTR) {
  }
  ending();
}

std::optional<Ending> WorkerProcess::ending() {
  if (ending_) return ending_;
  siginfo_t info{};
  const auto id = static_cast<id_t>(child_.pid);
  if (waitid(P_PID, id, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) return std::nullopt;
  ending_ = Ending{info.si_code != CLD_EXITED, info.si_status, false};
  // Still a zombie, so its number is its own: what it left running in its group goes too.
  kill(-child_.pid, SIGKILL);
  while (waitid(P_PID, id, &info, WEXITED) != 0 && errno == EINTR) {
  }
  return ending_;
}

void WorkerProcess::send(int signal) {
  if (!ending()) kill(child_.pid, signal);
}

bool WorkerProcess::stopped() const { return !ending_ && process_is_stopped(child_.pid); }

}  // namespace lockstep
