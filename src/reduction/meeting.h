// How workers and Reduction Servers find each other: at the rendezvous store of the run.
#pragma once
#include <memory>

#include "comm/shm/shm_transport.h"
#include "comm/wire/host_map.h"
#include "launch/store_client.h"
#include "reduction/served_transport.h"

namespace lockstep::reduction {

// The server's side. The address at which this host is reached by those who reach the store.
std::string address_towards(const HostPort& store);
// Tells the workers of the run where a server listens.
void announce_server(StoreClient& store, const HostPort& address);

// The workers' side: puts servers between a rank and those that it is joined with.
struct ServedRun {
  int64_t servers = 1;
  int64_t leaves = 1;  // of the canonical tree, which LeafSplit::search splits over the ranks
  std::string token;
  // Which ranks share a stream, and what joins those of this host (see ServedOptions).
  wire::HostMap map;
  shm::ShmTransport* local = nullptr;
  WaitLimits limits;
};
// CommError says how many servers have come, and how to start one.
std::unique_ptr<Transport> join_servers(std::unique_ptr<Transport> under, StoreClient& store,
                                        const ServedRun& run);

}  // namespace lockstep::reduction
