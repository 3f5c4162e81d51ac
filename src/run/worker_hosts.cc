#include "run/worker_hosts.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <fstream>

#include "base/error.h"

namespace lockstep {
namespace {

constexpr const char* kName = "host";
constexpr const char* kKey = "host_key";

std::string host_name() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

// The same for two processes only if they run under the same kernel, since the same start of it, and see the
// same network: container images and cloned machines have host names and machine numbers in common.
std::string host_key() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string boot;
  file >> boot;
  std::array<char, 64> network{};
  if (readlink("/proc/self/ns/net", network.data(), network.size() - 1) < 0) network[0] = 0;
  return fmt::format("{} {} {}", host_name(), boot, network.data());
}

std::string fact(const WorkerFacts& facts, const char* name) {
  const auto found = facts.own.find(name);
  return found == facts.own.end() ? "" : found->second;
}

}  // namespace

std::map<std::string, std::string> host_facts() { return {{kName, host_name()}, {kKey, host_key()}}; }

wire::HostMap host_map(const std::vector<WorkerFacts>& all) {
  struct Host {
    std::string name, key, shown;
  };
  std::vector<Host> hosts;
  std::vector<std::string> names;
  for (const WorkerFacts& facts : all) {
    Host one{fact(facts, kName), fact(facts, kKey), {}};
    auto found =
        std::find_if(hosts.begin(), hosts.end(), [&](const Host& host) { return host.key == one.key; });
    if (found == hosts.end()) {
      const auto before =
          std::count_if(hosts.begin(), hosts.end(), [&](const Host& host) { return host.name == one.name; });
      one.shown = before == 0 ? one.name : fmt::format("{} ({})", one.name, before + 1);
      found = hosts.insert(hosts.end(), std::move(one));
    }
    names.push_back(found->shown);
  }
  return wire::HostMap(names);
}

void require_one_host(const wire::HostMap& map, std::string_view transport) {
  if (map.hosts() == 1) return;
  std::string where;
  for (int host = 0; host < map.hosts(); ++host)
    where += fmt::format("{}{} on {}", host == 0 ? "" : ", ", map.size(host), map.name(host));
  throw UserError("strategy.transport {} joins workers of one host, but there are {}; use auto", transport,
                  where);
}

void require_tensor_hosts(const wire::HostMap& map, const MeshShape& mesh) {
  for (int rank = 0; rank + 1 < mesh.ranks(); ++rank) {
    const bool neighbours = mesh.coordinate(MeshAxis::kTensor, rank + 1) > 0;
    if (!neighbours || map.host_of(rank) == map.host_of(rank + 1)) continue;
    throw UserError(
        "strategy.tensor {}: ranks {} and {} share every matrix, but are on hosts {} and {}; start a "
        "multiple "
        "of {} workers on each host, or use a strategy.tensor that divides the workers of each",
        mesh.tensor, rank, rank + 1, map.name(map.host_of(rank)), map.name(map.host_of(rank + 1)),
        mesh.tensor);
  }
}

}  // namespace lockstep
