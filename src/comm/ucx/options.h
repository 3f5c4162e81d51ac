// How the ranks of several hosts find and reach each other.
#pragma once
#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "comm/transport.h"

namespace lockstep::ucx {

// Gives everybody's texts, by rank, for one's own. The store of a run does this; here it is only called.
using Exchange = std::function<std::vector<std::string>(const std::string& own)>;

struct UcxOptions {
  WaitLimits limits = {};
  std::chrono::milliseconds meeting_deadline{60000};
  // The network interface to use, such as eth0, or lo for ranks of one host (comm/ucx/interface.h finds it).
  // Empty: all. UCX_NET_DEVICES in the environment wins over either.
  std::string interface = {};
  // UCX's names of transports. None of shared memory is among them: ranks of one host have comm/shm, and
  // processes in different network namespaces of a machine are different hosts.
  std::string transports = "tcp,rc,ud,dc";
  // What these ranks are called where they are a line of a mesh (comm/rank_line.h): in messages, verdicts and
  // ledgers.
  int first_rank = 0;
  int rank_stride = 1;
};

}  // namespace lockstep::ucx
