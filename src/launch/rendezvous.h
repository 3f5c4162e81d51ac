// How a worker finds the others, whoever started it.
//
// A worker of our own launcher is told where the store is (LOCKSTEP_STORE) and the token (LOCKSTEP_TOKEN).
// Under another launcher worker 0 holds the store, at the placement's master address; the token comes from
// the job's environment, or, when all are on one host, from a file that only this user can read.
#pragma once
#include <memory>

#include "launch/join.h"
#include "launch/store_client.h"
#include "launch/store_server.h"
#include "launch/token.h"

namespace lockstep {

class Rendezvous {
 public:
  // UserError when the port is in use or workers on several hosts have no token; CommError when worker 0
  // cannot be reached within the deadline.
  Rendezvous(const WorkerPlace& placement, const Variables& variables, std::chrono::milliseconds deadline);
  ~Rendezvous();
  Rendezvous(const Rendezvous&) = delete;
  Rendezvous& operator=(const Rendezvous&) = delete;

  StoreClient& store() { return *client_; }
  std::vector<WorkerFacts> join(const WorkerFacts& facts);

 private:
  int64_t rank_;
  int64_t size_;
  std::chrono::milliseconds deadline_;
  std::unique_ptr<StoreServer> server_;
  std::unique_ptr<RunTokenFile> token_file_;  // if this worker wrote it
  std::unique_ptr<StoreClient> client_;
};

// Where the store of a run listens: on loopback unless it has workers on other hosts, then on the master's
// address alone, or on the one that LOCKSTEP_LISTEN names.
HostPort listen_address(const HostPort& master, bool one_host, const Variables& variables);

}  // namespace lockstep
