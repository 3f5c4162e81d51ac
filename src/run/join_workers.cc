#include "run/join_workers.h"

#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "base/version.h"
#include "comm/shm/meeting.h"
#include "comm/ucx/interface.h"
#include "comm/ucx/ucx_transport.h"
#include "comm/wire/hosts_transport.h"
#include "launch/rendezvous.h"
#include "run/worker_facts.h"
#include "run/worker_hosts.h"

namespace lockstep {
namespace {

WaitLimits limits_of(const JobSpec& spec) {
  WaitLimits limits;
  limits.deadline = std::chrono::milliseconds(static_cast<int64_t>(spec.strategy.deadline * 1000));
  // A word before the end, however short the deadline.
  limits.stall = std::min(limits.stall, limits.deadline / 2);
  return limits;
}

// The ranks of this host, who meet at a name that the first of them makes known.
std::unique_ptr<shm::ShmTransport> join_host(StoreClient& store, const wire::HostMap& map, int rank,
                                             const WaitLimits& limits) {
  const int host = map.host_of(rank);
  const std::string key = fmt::format("shm/meeting/{}", host);
  if (map.local_rank(rank) == 0) store.set(key, shm::random_meeting_name());
  shm::ShmOptions options;
  options.limits = limits;
  options.meeting_deadline = limits.deadline;
  options.first_rank = map.first(host);
  return shm::join_processes(store.get(key, limits.deadline), map.local_rank(rank), map.size(host), options);
}

std::unique_ptr<Transport> join_all(StoreClient& store, const WorkerPlace& placement,
                                    const wire::HostMap& map, const WaitLimits& limits) {
  const auto rank = static_cast<int>(placement.rank);
  const auto key = [](int one) { return fmt::format("ucx/address/{}", one); };
  const ucx::Exchange exchange = [&](const std::string& own) {
    store.set(key(rank), own);
    std::vector<std::string> all;
    for (int one = 0; one < map.ranks(); ++one) all.push_back(store.get(key(one), limits.deadline));
    return all;
  };
  ucx::UcxOptions options;
  options.limits = limits;
  options.meeting_deadline = limits.deadline;
  // Hosts often have interfaces that lead nowhere, with the same addresses on each, such as container
  // bridges.
  options.interface = ucx::interface_towards(placement.master_addr);
  return ucx::join(rank, map.ranks(), exchange, options);
}

std::unique_ptr<Transport> join_as(WorkerTransport choice, StoreClient& store, const WorkerPlace& placement,
                                   const wire::HostMap& map, const WaitLimits& limits) {
  const auto rank = static_cast<int>(placement.rank);
  if (choice == WorkerTransport::kUcx) return join_all(store, placement, map, limits);
  if (map.hosts() == 1) return join_host(store, map, rank, limits);
  auto local = map.shares() ? join_host(store, map, rank, limits) : nullptr;
  return std::make_unique<wire::HostsTransport>(map, std::move(local),
                                                join_all(store, placement, map, limits));
}

}  // namespace

std::unique_ptr<Transport> join_workers(const WorkerPlace& placement, const JoinOptions& options) {
  const WaitLimits& limits = options.limits;
  Rendezvous rendezvous(placement, process_variables(), limits.deadline);
  WorkerFacts facts = {.same = options.same, .own = host_facts()};
  facts.same.emplace("version", kVersion);
  const wire::HostMap map = host_map(rendezvous.join(facts));
  if (options.transport == WorkerTransport::kShm) require_one_host(map);
  auto transport = join_as(options.transport, rendezvous.store(), placement, map, limits);
  // Nobody leaves while another still needs the store.
  rendezvous.store().barrier("met", placement.size, limits.deadline);
  return transport;
}

std::unique_ptr<Transport> join_workers(const WorkerPlace& placement, const JobParts& parts) {
  return join_workers(placement, {.same = shared_facts(parts),
                                  .transport = parts.spec.strategy.transport,
                                  .limits = limits_of(parts.spec)});
}

}  // namespace lockstep
