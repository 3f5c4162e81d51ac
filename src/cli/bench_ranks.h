// The ranks of a bench: processes or threads of this host that it starts itself, or, where a launcher has
// placed this process among others (RANK, WORLD_SIZE, MASTER_ADDR, ...), this one.
#pragma once
#include <CLI/App.hpp>
#include <functional>
#include <memory>
#include <string>

#include "comm/transport.h"

namespace lockstep {

struct BenchRanks {
  int workers = 0;                 // 0: as many as were placed, or two
  std::string transport = "auto";  // shm, ucx, or what a run would use
  bool threads = false;
  int64_t servers = 0;  // Reduction Servers; of placed ranks
  int64_t leaves = 0;   // of sums through them; 0: one a worker
};

void add_rank_options(CLI::App& command, BenchRanks& ranks);
// Whether a launcher has placed this process, and how many ranks are started otherwise.
bool ranks_are_placed();
int started_ranks(const BenchRanks& ranks);
// Runs the body on every rank, or on the one that this process is; throws what went wrong with it.
void run_on_ranks(const BenchRanks& ranks, const std::function<void(std::unique_ptr<Transport>)>& body);

}  // namespace lockstep
