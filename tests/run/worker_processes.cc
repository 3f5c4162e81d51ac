#include "run/worker_processes.h"

#include <gtest/gtest.h>

#include <csignal>
#include <fstream>
#include <sstream>

namespace lockstep {
namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

pid_t parent_of(const fs::path& process) {
  const std::string stat = text_of(process / "stat");
  const size_t close = stat.rfind(')');  // of the name, which may hold anything
  if (close == std::string::npos) return -1;
  std::istringstream rest(stat.substr(close + 1));
  std::string state;
  pid_t parent = -1;
  rest >> state >> parent;
  return parent;
}

}  // namespace

std::map<std::string, std::string> variables_of(pid_t process) {
  std::map<std::string, std::string> variables;
  std::istringstream entries(text_of("/proc/" + std::to_string(process) + "/environ"));
  for (std::string one; std::getline(entries, one, '\0');)
    variables.emplace(one.substr(0, one.find('=')), one.substr(one.find('=') + 1));
  return variables;
}

std::map<int64_t, pid_t> workers_of(pid_t launcher) {
  std::map<int64_t, pid_t> workers;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos || parent_of(entry.path()) != launcher)
      continue;
    const pid_t pid = std::stoi(name);
    const auto variables = variables_of(pid);
    if (const auto rank = variables.find("RANK"); rank != variables.end())
      workers[std::stoll(rank->second)] = pid;
  }
  return workers;
}

std::string folder_of(const TrainCase& job, const std::string& run) {
  fs::create_directories(job.output(run));
  return job.output(run);
}

void wait_for_metrics(FolderEvents& events, const LockstepProcess& process) {
  constexpr int kWrites = 3;
  for (int writes = 0; writes < kWrites;) {
    const auto event = events.next(process);
    if (!event) return ADD_FAILURE() << "it ended before it was in training", void();
    writes += event->name == "metrics.jsonl" ? 1 : 0;
  }
}

bool left_in_shared_memory() {
  const fs::directory_iterator files("/dev/shm");
  return std::any_of(begin(files), end(files), [](const auto& file) {
    return file.path().filename().string().find("lockstep") != std::string::npos;
  });
}

WorkersInTraining::WorkersInTraining(const TrainCase& job, const std::string& run,
                                     const std::vector<std::string>& settings)
    : events_(folder_of(job, run)), launcher_(job.arguments(run, settings), job.log(run)) {
  wait_for_metrics(events_, launcher_);
  workers_ = workers_of(launcher_.pid());
}

void WorkersInTraining::send(int64_t rank, int signal) const { ::kill(workers_.at(rank), signal); }

Ended WorkersInTraining::wait() {
  Ended ended = launcher_.wait();
  for (const auto& [rank, pid] : workers_) EXPECT_NE(::kill(pid, 0), 0) << "worker " << rank << " still runs";
  EXPECT_FALSE(left_in_shared_memory());
  return ended;
}

}  // namespace lockstep
