// Which of this host's network interfaces leads to another host.
#pragma once
#include <string>

namespace lockstep::ucx {

// The name of the interface over which `host` (a name or an address) is reached, lo for this host's own
// loopback; empty when it cannot be told. With RDMA cards, these are named as well, as UCX does: they are
// preferred to sockets where they lead to the peer.
std::string interface_towards(const std::string& host);

// Whether this host has InfiniBand or RoCE cards.
bool has_rdma();

}  // namespace lockstep::ucx
