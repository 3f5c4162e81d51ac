// The workers that a launcher has started, by what the kernel knows of them.
#pragma once
#include <map>

#include "run/folder_events.h"
#include "run/train_case.h"

namespace lockstep {

// Process numbers of the launcher's children, by rank.
std::map<int64_t, pid_t> workers_of(pid_t launcher);
// The environment that a process was started with.
std::map<std::string, std::string> variables_of(pid_t process);

// A run of several workers in the middle of training, and what is left of it afterwards.
class WorkersInTraining {
 public:
  // Returns once the run has written to its metrics.
  WorkersInTraining(const TrainCase& job, const std::string& run, const std::vector<std::string>& settings);

  LockstepProcess& launcher() { return launcher_; }
  const std::map<int64_t, pid_t>& workers() const { return workers_; }
  void send(int64_t rank, int signal) const;
  // Waits for the launcher; no worker may be there any more.
  Ended wait();

 private:
  FolderEvents events_;
  LockstepProcess launcher_;
  std::map<int64_t, pid_t> workers_;
};

// Makes the folder if it is not there.
std::string folder_of(const TrainCase& job, const std::string& run);
// Waits until the process has written to its metrics; an error of the test if it ends before.
void wait_for_metrics(FolderEvents& events, const LockstepProcess& process);
// Whether anything of ours lies in /dev/shm, where a program that shares memory may forget files.
bool left_in_shared_memory();

}  // namespace lockstep
