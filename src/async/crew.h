// Crew: the processes that the coordinator of an asynchronous run has started on this host. Unlike the
// workers of a synchronous run they need not all live: who has ended is told, and the run decides.
#pragma once
#include <poll.h>

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "launch/ending.h"
#include "launch/oom.h"
#include "launch/worker_output.h"
#include "launch/worker_process.h"

namespace lockstep::async {

class Crew {
 public:
  struct Gone {
    std::string name;
    Ending ending;
    std::deque<std::string> last_lines;
  };

  // Each line that they print goes to `show`, under its process's name, and to a log file of its own.
  Crew(std::string log_folder, std::function<void(const std::string& line)> show);
  // Kills who is left.
  ~Crew();

  // To be called on a thread that lives as long as the run: they die with it.
  void start(const std::string& name, const std::vector<std::string>& command, const Variables& variables);
  void add_to(std::vector<pollfd>& entries) const;
  // Passes on what they have printed; those who have ended since the last call.
  std::vector<Gone> look();
  // Of a process that is to end, whatever it does.
  void kill(const std::string& name);
  bool is_stopped(const std::string& name) const;
  bool is_running(const std::string& name) const;
  // Waits for all, and ends those who do not end in time.
  void finish(std::chrono::milliseconds grace);

 private:
  struct Member {
    std::string name;
    WorkerOutput output;
    WorkerProcess process;
    LineSplitter out_lines = {}, err_lines = {};
    bool ended = false;
  };
  void read(Member& member);

  std::string log_folder_;
  std::function<void(const std::string&)> show_;
  OomWatch oom_;
  std::vector<std::unique_ptr<Member>> members_;
};

}  // namespace lockstep::async
