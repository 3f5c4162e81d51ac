// Which workers of a run are on the same host, and what that means for how they are joined.
#pragma once
#include <string>
#include <vector>

#include "comm/mesh.h"
#include "comm/wire/host_map.h"
#include "launch/join.h"

namespace lockstep {

// What a worker tells the others about its host, for host_map().
std::map<std::string, std::string> host_facts();

// By rank. Network namespaces of one machine are different hosts: their processes do not reach each other but
// over the network. Hosts that call themselves the same are told apart by a number. UserError where the
// ranks of a host are not one after the other.
wire::HostMap host_map(const std::vector<WorkerFacts>& all);

// What joins workers of one host joins no others. UserError says who is where.
void require_one_host(const wire::HostMap& map, std::string_view transport);
// Tensor ranks exchange in every layer. UserError says which of them are apart.
void require_tensor_hosts(const wire::HostMap& map, const MeshShape& mesh);

}  // namespace lockstep
