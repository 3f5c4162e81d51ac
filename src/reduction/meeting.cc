#include "reduction/meeting.h"

#include <netdb.h>
#include <sys/socket.h>

#include "base/error.h"
#include "launch/token.h"

namespace lockstep::reduction {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr const char* kCount = "reduce/servers";
constexpr const char* kSession = "reduce/session";

std::string key_of(int64_t server) { return fmt::format("reduce/server/{}", server); }

std::vector<HostPort> find_servers(StoreClient& store, int64_t count, milliseconds deadline) {
  std::vector<HostPort> found;
  const TimePoint until = steady_clock::now() + deadline;
  for (int64_t server = 0; server < count; ++server) {
    const auto left =
        std::max(milliseconds(0), std::chrono::duration_cast<milliseconds>(until - steady_clock::now()));
    std::string address;
    try {
      address = store.get(key_of(server), left);
    } catch (const CommError& error) {
      throw CommError(
          "strategy.reduce.servers is {}, and {} have come: start the others with `lockstep serve-reduce "
          "--master-addr ADDRESS --master-port PORT`, with the run's LOCKSTEP_TOKEN ({})",
          count, server, error.what());
    }
    found.push_back(parse_host_port(address, "a reduction server's address"));
  }
  return found;
}

std::vector<int64_t> ends_by_host(const LeafSplit& split, const wire::HostMap& map) {
  std::vector<int64_t> ends;
  for (int host = 0; host < map.hosts(); ++host)
    ends.push_back(split.range(map.first(host) + map.size(host) - 1).end);
  return ends;
}

}  // namespace

std::string address_towards(const HostPort& store) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* list = nullptr;
  const int code = getaddrinfo(store.host.c_str(), std::to_string(store.port).c_str(), &hints, &list);
  if (code != 0) throw CommError("no address for {}: {}", to_string(store), gai_strerror(code));
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(list, freeaddrinfo);
  for (const addrinfo* one = list; one != nullptr; one = one->ai_next) {
    // Connecting a datagram socket sends nothing: it only chooses the way.
    const Descriptor socket(::socket(one->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_storage own{};
    socklen_t length = sizeof own;
    char host[NI_MAXHOST] = "";
    if (socket && connect(socket.get(), one->ai_addr, one->ai_addrlen) == 0 &&
        getsockname(socket.get(), reinterpret_cast<sockaddr*>(&own), &length) == 0 &&
        getnameinfo(reinterpret_cast<sockaddr*>(&own), length, host, sizeof host, nullptr, 0,
                    NI_NUMERICHOST) == 0)
      return host;
  }
  throw CommError("no way leads from here to {}", to_string(store));
}

void announce_server(StoreClient& store, const HostPort& address) {
  store.set(key_of(store.add(kCount, 1) - 1), to_string(address));
}

std::unique_ptr<Transport> join_servers(std::unique_ptr<Transport> under, StoreClient& store,
                                        const ServedRun& run) {
  const int rank = under->rank();
  const LeafSplit split = LeafSplit::search(run.leaves, under->size());
  if (rank == 0) store.set(kSession, random_nonce());
  SessionTerms terms;
  terms.session = store.get(kSession, run.limits.deadline);
  terms.rank = rank;
  terms.ranks = under->size();
  terms.host = run.map.host_of(rank);
  terms.leaves = split.leaves();
  terms.ends = ends_by_host(split, run.map);
  const std::vector<HostPort> servers = find_servers(store, run.servers, run.limits.deadline);
  const TimePoint until = steady_clock::now() + run.limits.deadline;
  std::vector<std::unique_ptr<ServerLink>> links;
  for (size_t i = 0; i < servers.size(); ++i)
    links.push_back(std::make_unique<ServerLink>(static_cast<int>(i), servers[i], run.token, terms, until));
  return std::make_unique<ServedTransport>(
      std::move(under), std::move(links),
      ServedOptions{.map = run.map, .local = run.local, .split = split, .limits = run.limits});
}

}  // namespace lockstep::reduction
