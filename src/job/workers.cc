#include "job/workers.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace lockstep {

bool trains_async(const JobSpec& spec) {
  return spec.strategy.mode == TrainMode::kAsync && spec.strategy.staleness > 0;
}

std::optional<int64_t> wanted_workers(const JobSpec& spec) {
  if (spec.strategy.workers) return spec.strategy.workers;
  int64_t machines = 0;
  for (size_t i = 0; i < std::min(kTrainingPools, spec.workerPoolSpecs.size()); ++i)
    machines += spec.workerPoolSpecs[i].replicaCount;
  if (machines > 0) return machines;
  const int64_t replica = spec.strategy.pipeline * spec.strategy.tensor;
  return replica > 1 ? std::optional(replica) : std::nullopt;
}

int64_t data_workers(const JobSpec& spec) {
  if (trains_async(spec)) return 1;
  const int64_t workers = wanted_workers(spec).value_or(1);
  const int64_t replica = spec.strategy.pipeline * spec.strategy.tensor;
  if (workers % replica == 0) return workers / replica;
  const int64_t fewer = workers / replica * replica;
  throw UserError(
      "{}: {} workers are no whole number of replicas of strategy.pipeline {} times strategy.tensor {}; use "
      "{}{} workers",
      spec.where("strategy.workers"), workers, spec.strategy.pipeline, spec.strategy.tensor,
      fewer > 0 ? fmt::format("{} or ", fewer) : "", fewer + replica);
}

int64_t tensor_leaves(const JobSpec& spec) {
  return spec.strategy.tensor_leaves.value_or(spec.strategy.tensor);
}

void settle_servers(JobSpec& spec) {
  ReduceSpec& reduce = spec.strategy.reduce;
  const std::string pool = fmt::format("workerPoolSpecs[{}]", kServerPool);
  const int64_t machines =
      spec.workerPoolSpecs.size() > kServerPool ? spec.workerPoolSpecs[kServerPool].replicaCount : 0;
  if (reduce.via != ReduceVia::kServer && reduce.servers)
    throw UserError("{}: strategy.reduce.servers {} needs strategy.reduce.via: server, and it is {}",
                    spec.where("strategy.reduce.servers"), *reduce.servers, name_of(reduce.via));
  if (reduce.via == ReduceVia::kServer && reduce.servers) return;
  const auto derive = [&](const char* path, std::string how) {
    spec.origins[path] = {.kind = Origin::Kind::kDerived, .how = std::move(how)};
  };
  if (reduce.via == ReduceVia::kServer) {
    reduce.servers = std::max<int64_t>(1, machines);
    return derive("strategy.reduce.servers", machines > 0 ? pool : "one");
  }
  if (machines == 0) return;
  if (spec.strategy.workers || !spec.is_default("strategy.reduce.via")) {
    spec.notes.push_back(fmt::format(
        "{} names {} reduction servers, which are not used: {}; the bits are the same", pool, machines,
        spec.strategy.workers ? "strategy.workers takes the place of the pools"
                              : "strategy.reduce.via is written and is not server"));
    return;
  }
  reduce.via = ReduceVia::kServer;
  reduce.servers = machines;
  derive("strategy.reduce.via", pool);
  derive("strategy.reduce.servers", pool);
}

}  // namespace lockstep
