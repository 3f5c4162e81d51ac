// The roll call before step 1: every worker says who it is and what it is about to run, and all check that it
// is the same thing. Workers that differ would train apart from each other without anybody noticing.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "launch/store_client.h"

namespace lockstep {

struct WorkerFacts {
  std::map<std::string, std::string> same;  // must be equal on all: identity hash, version, ...
  std::map<std::string, std::string> own;   // for the others to know: host, process, addresses
};

// Everybody's facts, by rank. CommError names who did not come within the deadline; UserError, the same on
// all workers, names who differs in which fact.
std::vector<WorkerFacts> join(StoreClient& store, int64_t rank, int64_t size, const WorkerFacts& facts,
                              std::chrono::milliseconds deadline);

// What a join finds wrong; empty if nothing. A fact that most have alike is taken for the right one.
std::string differences(const std::vector<WorkerFacts>& all);

}  // namespace lockstep
