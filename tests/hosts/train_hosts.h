// Training on the hosts of a cluster in a box: the same job on any layout of workers.
#pragma once
#include <string>
#include <vector>

#include "hosts/host_box.h"
#include "run/train_case.h"

namespace lockstep {

// Workers are spread over the hosts as evenly as they can be, the first hosts having one more.
struct WorkerLayout {
  int workers = 2;
  int hosts = 2;
  int threads = 1;  // of a worker; 0: what the program chooses
  std::string transport = "auto";

  std::string text() const;
};

// Workers on the hosts of a box, each started by itself and told its place in the environment as torchrun
// would: so that hosts may have different numbers of them.
class TrainHosts {
 public:
  TrainHosts(const TrainCase& job, const std::string& run, const WorkerLayout& layout,
             const std::vector<std::string>& settings);

  HostBox& box() { return box_; }
  // The summary of a run that must reach its end.
  RunSummary trained();

 private:
  const TrainCase& job_;
  std::string run_;
  HostBox box_;
};

}  // namespace lockstep
