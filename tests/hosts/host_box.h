// The cluster in a box (the script `hosts` beside this file) as an object: hosts that run a command each, for
// as long as the object lives. Where hosts cannot be made a test says so: GTEST_SKIP() << *why_no_hosts().
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "run/lockstep_process.h"

namespace lockstep {

struct HostOptions {
  int hosts = 2;
  std::string rate{};  // of every link, as in 200mbit; empty: not shaped
};

// The reason, or nothing where hosts can be made.
std::optional<std::string> why_no_hosts();

class HostBox {
 public:
  // {host}, {hosts}, {address} and {master} in the command are replaced. What the hosts write goes to files
  // in the folder `logs`.
  HostBox(const HostOptions& options, const std::vector<std::string>& command, std::string logs);

  // Runs a command on a host of the box, beside what runs there; ends with its exit code.
  int at(int host, const std::vector<std::string>& command) const;
  // What a host's command has written so far to its standard output and error.
  Ended so_far(int host) const;
  // How the command of each host ended.
  std::vector<Ended> wait();

  const ChildProcess& process() const { return process_; }

 private:
  int hosts_;
  std::string logs_;
  ChildProcess process_;
};

}  // namespace lockstep
