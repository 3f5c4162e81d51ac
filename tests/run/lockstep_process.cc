#include "run/lockstep_process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/file.h"

namespace lockstep {
namespace {

constexpr unsigned kLongestSeconds = 300;

// Between fork and exec, so nothing that takes memory or a lock.
[[noreturn]] void become(char* const* arguments, char* const* environment, const char* out, const char* err,
                         const Surroundings& surroundings) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::alarm(kLongestSeconds);
  ::dup2(::open("/dev/null", O_RDONLY), STDIN_FILENO);
  ::dup2(::open(out, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644), STDOUT_FILENO);
  ::dup2(::open(err, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644), STDERR_FILENO);
  if (surroundings.out >= 0) ::dup2(surroundings.out, STDOUT_FILENO);
  if (surroundings.err >= 0) ::dup2(surroundings.err, STDERR_FILENO);
  for (const int signal : surroundings.ignored) std::signal(signal, SIG_IGN);
  for (const int descriptor : surroundings.closed) ::close(descriptor);
  if (surroundings.file_limit) {
    const rlimit limit{*surroundings.file_limit, *surroundings.file_limit};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  if (!surroundings.control_group.empty() &&
      ::write(::open(surroundings.control_group.c_str(), O_WRONLY | O_CLOEXEC), "0", 1) != 1)
    ::_exit(126);
  ::execve(arguments[0], arguments, environment);
  ::_exit(127);
}

// Whether a line of proc(5)'s status, a set of signals, has this one. Of a process that has ended none has.
bool in_set(const std::filesystem::path& path, std::string_view name, int signal) {
  std::ifstream status(path);
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("State:") && line.find('Z') != std::string::npos)
      return false;
    else if (line.starts_with(name))
      return (std::stoull(line.substr(name.size()), nullptr, 16) >> (signal - 1) & 1) != 0;
  return false;
}

std::vector<std::string> with_program(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), LOCKSTEP_PROGRAM);
  return arguments;
}

std::vector<char*> pointers_to(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& string : strings) pointers.push_back(string.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

LockstepProcess::LockstepProcess(const std::vector<std::string>& arguments, std::string log,
                                 const Surroundings& surroundings)
    : ChildProcess(with_program(arguments), std::move(log), surroundings) {}

ChildProcess::ChildProcess(std::vector<std::string> command, std::string log,
                           const Surroundings& surroundings)
    : log_(std::move(log)) {
  // The first of two entries of a name counts.
  std::vector<std::string> variables = surroundings.environment;
  for (char** entry = environ; *entry != nullptr; ++entry) variables.emplace_back(*entry);
  const auto pointers = pointers_to(command), environment = pointers_to(variables);
  const std::string out = log_ + ".out", err = log_ + ".err";
  pid_ = ::fork();
  if (pid_ == 0) become(pointers.data(), environment.data(), out.c_str(), err.c_str(), surroundings);
  if (pid_ < 0) throw InternalError("cannot start {}: errno {}", command[0], errno);
  pidfd_ = FileDescriptor(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
}

ChildProcess::~ChildProcess() {
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

void ChildProcess::send(int signal) const {
  if (pid_ > 0) ::kill(pid_, signal);
}

bool ChildProcess::pending(int signal) const {
  return in_set(fmt::format("/proc/{}/status", pid_), "ShdPnd:", signal);
}

int64_t ChildProcess::threads_open_to(int signal) const {
  const std::filesystem::directory_iterator threads(fmt::format("/proc/{}/task", pid_));
  return std::count_if(begin(threads), end(threads), [&](const auto& thread) {
    return !in_set(thread.path() / "status", "SigBlk:", signal);
  });
}

Ended ChildProcess::wait() {
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0)
    if (errno != EINTR) throw InternalError("cannot wait for process {}: errno {}", pid_, errno);
  pid_ = -1;
  Ended ended;
  if (WIFEXITED(status)) ended.code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) ended.signal = WTERMSIG(status);
  ended.out = read_file(log_ + ".out");
  ended.err = read_file(log_ + ".err");
  return ended;
}

}  // namespace lockstep
