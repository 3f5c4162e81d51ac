#include "cli/bench_ranks.h"

#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstring>
#include <iostream>
#include <thread>

#include "base/error.h"
#include "comm/shm/meeting.h"
#include "comm/ucx/local_exchange.h"
#include "comm/ucx/ucx_transport.h"
#include "launch/environment.h"
#include "run/join_workers.h"

namespace lockstep {
namespace {

using Body = std::function<void(std::unique_ptr<Transport>)>;
using Join = std::function<std::unique_ptr<Transport>(int rank)>;

constexpr int kUsualWorkers = 2;

void run_threads(int workers, const Join& join, const Body& body) {
  std::vector<std::thread> threads;
  std::vector<std::exception_ptr> errors(static_cast<size_t>(workers));
  for (int rank = 0; rank < workers; ++rank)
    threads.emplace_back([&, rank] {
      try {
        body(join(rank));
      } catch (...) {
        errors[static_cast<size_t>(rank)] = std::current_exception();
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
}

// Rank 0 stays in this process; the others are its children, and are waited for whatever happens.
void run_processes(int workers, const Join& join, const Body& body) {
  std::vector<pid_t> children;
  for (int rank = 1; rank < workers; ++rank) {
    const pid_t child = fork();
    if (child < 0) throw CommError("cannot start rank {}: {}", rank, std::strerror(errno));
    if (child > 0) {
      children.push_back(child);
      continue;
    }
    int code = 0;
    try {
      body(join(rank));
    } catch (const std::exception& error) {
      std::cerr << fmt::format("lockstep: rank {}: {}\n", rank, error.what());
      code = 1;
    }
    _exit(code);
  }
  std::exception_ptr error;
  try {
    body(join(0));
  } catch (...) {
    error = std::current_exception();
  }
  bool failed = false;
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    failed |= status != 0;
  }
  if (error) std::rethrow_exception(error);
  if (failed) throw CommError("a rank failed; its message is above");
}

void run_placed(const BenchRanks& ranks, const WorkerPlace& placement, const Body& body) {
  if (ranks.workers != 0 && ranks.workers != placement.size)
    throw UserError("--workers {}: {}; leave it out", ranks.workers, describe(placement));
  if (ranks.threads) throw UserError("--threads: {}; leave it out", describe(placement));
  JoinOptions options;
  options.transport = ranks.transport == "shm"   ? WorkerTransport::kShm
                      : ranks.transport == "ucx" ? WorkerTransport::kUcx
                                                 : WorkerTransport::kAuto;
  options.servers = ranks.servers;
  options.leaves = ranks.leaves == 0 ? placement.size : ranks.leaves;
  body(join_workers(placement, options));
}

}  // namespace

void add_rank_options(CLI::App& command, BenchRanks& ranks) {
  command.add_option("--workers", ranks.workers, "ranks (default: 2, or those that a launcher has started)")
      ->check(CLI::Range(1, shm::kMaxRanks));
  command.add_option("--transport", ranks.transport, "shm, ucx, or auto: what a run would use")
      ->check(CLI::IsMember({"auto", "shm", "ucx"}));
  command.add_flag("--threads", ranks.threads, "ranks are threads of one process");
}

bool ranks_are_placed() { return placement_from(process_variables()).has_value(); }

int started_ranks(const BenchRanks& ranks) { return ranks.workers == 0 ? kUsualWorkers : ranks.workers; }

void run_on_ranks(const BenchRanks& ranks, const Body& body) {
  if (const auto placement = placement_from(process_variables())) return run_placed(ranks, *placement, body);
  if (ranks.servers > 0)
    throw UserError("--servers is for ranks that a launcher has started, which meet servers at their store");
  const int workers = started_ranks(ranks);
  const auto run = [&](const Join& join) {
    return ranks.threads ? run_threads(workers, join, body) : run_processes(workers, join, body);
  };
  if (ranks.transport == "ucx") {
    ucx::LocalExchange exchange(workers);
    ucx::UcxOptions options;
    options.interface = "lo";
    return run([&](int rank) { return ucx::join(rank, workers, exchange.of(rank), options); });
  }
  if (ranks.threads) {
    shm::ThreadMeeting meeting(workers);
    return run([&](int rank) { return meeting.join(rank); });
  }
  const std::string name = shm::random_meeting_name();
  run([&](int rank) { return shm::join_processes(name, rank, workers); });
}

}  // namespace lockstep
