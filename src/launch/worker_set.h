// Starts the workers of this host, watches over them, and says how the run ended.
//
// When one fails, the others are stopped within seconds: SIGTERM, then SIGKILL after a grace; all are started
// again where that is asked for. SIGTERM, SIGINT, SIGHUP, SIGUSR1 and SIGUSR2 are passed on, and workers that
// end properly are waited for. Nothing is left running after any ending, also when the launcher itself is
// killed.
#pragma once
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "launch/ending.h"
#include "launch/worker_variables.h"

namespace lockstep {

struct WorkerSetOptions {
  std::vector<std::string> command;  // of every worker
  // Processes beside the workers, which serve them: started before them and ended after them. One that ends
  // on its own is told of, and is the workers' business.
  std::vector<std::string> server_command = {};
  int64_t servers = 0;
  RunLayout layout;  // log_folder: one worker-N.log each; most_restarts: after a crash
  // Before every start: what the workers need anew goes into the layout.
  std::function<void(RunLayout& layout)> prepare = {};
  Variables inherited = process_variables();
  int out = 1;  // where their standard output and error go, each line under the worker's name
  int err = 2;
  // Between SIGTERM and SIGKILL.
  std::chrono::milliseconds grace{5000};
  // How long after a failure others that failed too are waited for, to find the one that came first.
  std::chrono::milliseconds settle{200};
  // How long the others may take to reach a verdict that one has reached (bad input, does not fit, diverged).
  std::chrono::milliseconds agreement{2000};
  // How long the others may take to end after one has ended because it was asked to.
  std::chrono::milliseconds farewell{60000};
};

struct WorkerFailure {
  int64_t rank = 0;
  std::string what;  // "killed by SIGSEGV (Segmentation fault)"
  std::vector<std::string> last_lines;
  std::string log_path;          // empty if there is none
  std::vector<int64_t> stopped;  // ranks that stood still (SIGSTOP) at the time
};

struct WorkerSetResult {
  // 0; 75, 130, 143 if they ended because they were asked to; 2, 3, 5, 6 if all agree on it; 2 if worker 0
  // ended with it first; otherwise 1.
  int exit_code = 0;
  std::optional<WorkerFailure> first_failure;
  // A crash, or a failure that may be over: not asked for, and no verdict that would be the same again.
  bool may_be_restarted = false;
};

// To be called on a thread that lives as long as the run, before other threads that take signals are started:
// the workers die with it. UserError when the command cannot be started.
WorkerSetResult run_workers(const WorkerSetOptions& options);

// For people: who failed first, how, and its last lines.
std::string describe(const WorkerFailure& failure);

}  // namespace lockstep
