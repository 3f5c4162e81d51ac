#include "prepare/server_advice.h"

#include <fmt/format.h>

#include <cmath>

#include "job/workers.h"
#include "prepare/job_options.h"

namespace lockstep {
namespace {

// Directly a host sends 2 (N-1)/N of its sums, and through servers all of them once.
std::string gain_line(int64_t hosts) {
  return fmt::format(
      "Reduction Servers: {} hosts send 2 ({}-1)/{} = {:.3g} times their gradients directly, and once "
      "through "
      "servers: the exchange is at most {:.3g} times as fast",
      hosts, hosts, hosts, 2.0 * static_cast<double>(hosts - 1) / static_cast<double>(hosts),
      2.0 * static_cast<double>(hosts - 1) / static_cast<double>(hosts));
}

// N hosts at rate B bring N B to R servers.
std::string need_line(int64_t hosts) {
  return fmt::format(
      "it takes {} servers with links as fast as the workers', {} with twice, {} with four times the rate",
      hosts, (hosts + 1) / 2, (hosts + 3) / 4);
}

std::string verdict(int64_t hosts, int64_t servers) {
  const double rate = static_cast<double>(hosts) / static_cast<double>(servers);
  if (rate <= 1) return fmt::format("this job's {} are enough", servers);
  return fmt::format("this job's {} {} if {} links are at least {:.3g} times as fast as the workers'",
                     servers, servers == 1 ? "is enough" : "are enough", servers == 1 ? "its" : "their",
                     rate);
}

// How much slower a worker may be before the others wait for it (docs/async.md).
std::vector<std::string> async_advice(const JobSpec& spec) {
  const int64_t workers = job_workers(spec), staleness = spec.strategy.staleness;
  std::vector<std::string> lines = {fmt::format(
      "asynchronous: {} worker{} push to {} parameter server{}, weights at most {} updates behind", workers,
      workers == 1 ? "" : "s", spec.strategy.servers, spec.strategy.servers == 1 ? "" : "s", staleness)};
  if (workers > 1)
    lines.push_back(fmt::format(
        "one that is up to {:.3g} times slower than the others holds nobody up; five times slower "
        "needs strategy.staleness {} for 0.85 of the speed of all",
        static_cast<double>(staleness) / static_cast<double>(workers - 1),
        static_cast<int64_t>(std::ceil(0.85 * static_cast<double>(5 * (workers - 1) + 1))) - 1));
  return lines;
}

}  // namespace

std::vector<std::string> server_advice(const JobSpec& spec) {
  if (trains_async(spec)) return async_advice(spec);
  if (spec.strategy.mode == TrainMode::kAsync)
    return {"strategy.staleness 0: synchronous training, without parameter servers"};
  const bool served = spec.strategy.reduce.via == ReduceVia::kServer;
  const int64_t workers = job_workers(spec);
  const bool by_pools = !spec.strategy.workers && wanted_workers(spec);
  if (!served && !by_pools) return {};
  if (workers < 2)
    return served ? std::vector<
                        std::string>{"Reduction Servers: one worker has nothing to exchange; none is used"}
                  : std::vector<std::string>{};
  if (workers == 2)
    return {
        "Reduction Servers: never worth it between 2 hosts, each of which sends the other as much as it "
        "would "
        "send to servers; use strategy.reduce.via direct"};
  std::vector<std::string> lines = {
      gain_line(workers) + (by_pools ? "" : fmt::format(", if the {} workers have a host each", workers)),
      need_line(workers)};
  if (served) lines.push_back(verdict(workers, *spec.strategy.reduce.servers));
  return lines;
}

}  // namespace lockstep
