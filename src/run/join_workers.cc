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
#include "prepare/job_options.h"
#include "reduction/meeting.h"
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

// Some ranks of a run who form a group, and what the store calls them.
struct Members {
  std::string key;
  RankLine line;
  int index;          // of this rank among them
  wire::HostMap map;  // by index
};

Members all_members(const WorkerPlace& placement, const wire::HostMap& map) {
  return {"", {0, 1, map.ranks()}, static_cast<int>(placement.rank), map};
}

Members members_of(std::string_view name, const RankLine& line, int index, const wire::HostMap& map) {
  std::vector<std::string> hosts;
  for (int i = 0; i < line.count; ++i) hosts.push_back(map.name(map.host_of(line.number(i))));
  return {fmt::format("{}/{}/", name, line.first), line, index, wire::HostMap(hosts)};
}

// Those of this host, who meet at a name that the first of them makes known.
std::unique_ptr<shm::ShmTransport> join_host(StoreClient& store, const Members& members,
                                             const WaitLimits& limits) {
  const wire::HostMap& map = members.map;
  const int host = map.host_of(members.index);
  const std::string key = fmt::format("{}shm/meeting/{}", members.key, host);
  if (map.local_rank(members.index) == 0) store.set(key, shm::random_meeting_name());
  shm::ShmOptions options;
  options.limits = limits;
  options.meeting_deadline = limits.deadline;
  options.first_rank = members.line.number(map.first(host));
  options.rank_stride = members.line.stride;
  return shm::join_processes(store.get(key, limits.deadline), map.local_rank(members.index), map.size(host),
                             options);
}

std::unique_ptr<Transport> join_all(StoreClient& store, const WorkerPlace& placement, const Members& members,
                                    const WaitLimits& limits) {
  const int ranks = members.map.ranks();
  const auto key = [&](int one) { return fmt::format("{}ucx/address/{}", members.key, one); };
  const ucx::Exchange exchange = [&](const std::string& own) {
    store.set(key(members.index), own);
    std::vector<std::string> all;
    for (int one = 0; one < ranks; ++one) all.push_back(store.get(key(one), limits.deadline));
    return all;
  };
  ucx::UcxOptions options;
  options.limits = limits;
  options.meeting_deadline = limits.deadline;
  options.first_rank = members.line.first;
  options.rank_stride = members.line.stride;
  // Hosts often have interfaces that lead nowhere, with the same addresses on each, such as container
  // bridges.
  options.interface = ucx::interface_towards(placement.master_addr);
  return ucx::join(members.index, ranks, exchange, options);
}

struct Joined {
  std::unique_ptr<Transport> transport;
  // Which ranks send what they have to others together, and what joins those of this host.
  wire::HostMap streams;
  shm::ShmTransport* local = nullptr;
};

Joined join_as(WorkerTransport choice, StoreClient& store, const WorkerPlace& placement,
               const Members& members, const WaitLimits& limits) {
  const wire::HostMap& map = members.map;
  const wire::HostMap each = wire::HostMap::one_each(map.ranks());
  if (choice == WorkerTransport::kUcx) return {join_all(store, placement, members, limits), each};
  if (map.hosts() == 1) return {join_host(store, members, limits), each};
  auto local = map.shares() ? join_host(store, members, limits) : nullptr;
  shm::ShmTransport* const neighbours = local.get();
  return {std::make_unique<wire::HostsTransport>(map, std::move(local),
                                                 join_all(store, placement, members, limits)),
          map, neighbours};
}

// Workers of one host have nothing to add up before they send: each is a stream of its own.
std::unique_ptr<Transport> with_servers(Joined joined, StoreClient& store, const JoinOptions& options) {
  if (options.servers == 0) return std::move(joined.transport);
  const std::string token = token_from(process_variables());
  if (token.empty())
    throw UserError(
        "Reduction Servers and workers need a secret in common: set LOCKSTEP_TOKEN to the same value for all "
        "of "
        "them, for instance from: openssl rand -hex 16");
  return reduction::join_servers(std::move(joined.transport), store,
                                 {.servers = options.servers,
                                  .leaves = options.leaves,
                                  .token = token,
                                  .map = joined.streams,
                                  .local = joined.local,
                                  .limits = options.limits});
}

// Meets everybody, and lets `form` make groups out of it while the store is there.
template <typename Form>
auto meet(const WorkerPlace& placement, const JoinOptions& options, const Form& form) {
  const WaitLimits& limits = options.limits;
  Rendezvous rendezvous(placement, process_variables(), limits.deadline);
  WorkerFacts facts = {.same = options.same, .own = host_facts()};
  facts.same.emplace("version", kVersion);
  const wire::HostMap map = host_map(rendezvous.join(facts));
  if (options.transport == WorkerTransport::kShm || options.transport == WorkerTransport::kCudaIpc)
    require_one_host(map, name_of(options.transport));
  auto formed = form(rendezvous.store(), map);
  // Nobody leaves while another still needs the store.
  rendezvous.store().barrier("met", placement.size, limits.deadline);
  return formed;
}

}  // namespace

std::unique_ptr<Transport> join_workers(const WorkerPlace& placement, const JoinOptions& options) {
  return meet(placement, options, [&](StoreClient& store, const wire::HostMap& map) {
    return with_servers(
        join_as(options.transport, store, placement, all_members(placement, map), options.limits), store,
        options);
  });
}

JoinedWorkers join_workers(const WorkerPlace& placement, const JobParts& parts) {
  const JoinOptions options{.same = shared_facts(parts),
                            .transport = parts.spec.strategy.transport,
                            .limits = limits_of(parts.spec),
                            .servers = parts.spec.strategy.reduce.servers.value_or(0),
                            .leaves = parts.resolved.leaves};
  const MeshShape shape = job_mesh(parts.spec);
  const LeafSplit leaves = LeafSplit::search(parts.resolved.leaves, shape.data);
  return meet(placement, options, [&](StoreClient& store, const wire::HostMap& map) {
    require_tensor_hosts(map, shape);
    const auto join = [&](const Members& members) {
      return join_as(options.transport, store, placement, members, options.limits);
    };
    JoinedWorkers joined;
    joined.all = std::make_unique<Group>(with_servers(join(all_members(placement, map)), store, options),
                                         shape.splits_model() ? LeafSplit::one_each(shape.ranks()) : leaves);
    if (shape.splits_model())
      joined.mesh =
          std::make_unique<Mesh>(shape, static_cast<int>(placement.rank), leaves,
                                 [&](MeshAxis axis, const RankLine& line, int index) {
                                   return join(members_of(name_of(axis), line, index, map)).transport;
                                 });
    const auto part = static_cast<int>(parts.spec.strategy.zero_group.value_or(shape.data));
    if (part == shape.data) return joined;
    const int rank = static_cast<int>(placement.rank), parts_count = shape.data / part;
    const RankLine own{rank / part * part, 1, part}, same_place{rank % part, part, parts_count};
    joined.part = std::make_unique<Group>(join(members_of("part", own, rank % part, map)).transport,
                                          LeafSplit::one_each(part), "part");
    joined.replicas =
        std::make_unique<Group>(join(members_of("replicas", same_place, rank / part, map)).transport,
                                LeafSplit::search(parts.resolved.leaves, parts_count), "replicas");
    joined.parts_on_hosts = true;
    for (int other = 0; other < shape.data; ++other)
      joined.parts_on_hosts &= map.host_of(other) == map.host_of(other / part * part);
    return joined;
  });
}

}  // namespace lockstep
