#include "launch/rendezvous.h"

#include <thread>

#include "base/error.h"

namespace lockstep {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::string_view kLoopback = "127.0.0.1";

// Worker 0 writes the file when it listens; until then there is none, or one of an earlier run on the port.
std::unique_ptr<StoreClient> connect_by_file(const RunTokenFile& file, const HostPort& address,
                                             const std::string& name, milliseconds deadline) {
  constexpr milliseconds kBetweenAttempts{20};
  const TimePoint until = steady_clock::now() + deadline;
  std::string last_error = "it has left no token on this host";
  while (steady_clock::now() < until) {
    if (const std::string token = file.read(); !token.empty()) {
      try {
        const auto left = std::chrono::duration_cast<milliseconds>(until - steady_clock::now());
        return std::make_unique<StoreClient>(address, token, name, std::min(left, milliseconds(1000)));
      } catch (const CommError& error) {
        last_error = error.what();
      }
    }
    std::this_thread::sleep_for(kBetweenAttempts);
  }
  throw CommError("{} found no worker-0 at {} within {} ms: {}", name, to_string(address), deadline.count(),
                  last_error);
}

// How worker 0 reaches its own store.
HostPort own_address(const HostPort& listening) {
  const bool all = listening.host == "0.0.0.0" || listening.host == "::";
  return {all ? std::string(kLoopback) : listening.host, listening.port};
}

}  // namespace

HostPort listen_address(const HostPort& master, bool one_host, const Variables& variables) {
  if (one_host) return {std::string(kLoopback), master.port};
  if (const auto asked = find_variable(variables, "LOCKSTEP_LISTEN"))
    return {std::string(*asked), master.port};
  return {address_for_others(master.host), master.port};
}

Rendezvous::Rendezvous(const WorkerPlace& placement, const Variables& variables, milliseconds deadline)
    : rank_(placement.rank), size_(placement.size), deadline_(deadline) {
  const std::string name = worker_name(rank_);
  std::string token = token_from(variables);
  if (const auto store = find_variable(variables, "LOCKSTEP_STORE")) {
    if (token.empty())
      throw UserError("LOCKSTEP_STORE is set but LOCKSTEP_TOKEN is not; set both or neither");
    client_ = std::make_unique<StoreClient>(parse_host_port(*store, "LOCKSTEP_STORE"), token, name, deadline);
    return;
  }
  const bool by_file = token.empty();
  if (by_file && !placement.all_on_one_host())
    throw UserError(
        "workers on several hosts need a secret in common: set LOCKSTEP_TOKEN to the same value for all of "
        "them, "
        "for instance from: openssl rand -hex 16");
  const HostPort address = {placement.all_on_one_host() ? std::string(kLoopback) : placement.master_addr,
                            placement.master_port};
  auto file = std::make_unique<RunTokenFile>(variables, placement.master_port);
  if (rank_ != 0 && by_file) {
    client_ = connect_by_file(*file, address, name, deadline);
    return;
  }
  if (rank_ == 0) {
    if (by_file) token = random_token();
    StoreOptions options;
    options.listen = listen_address(address, placement.all_on_one_host(), variables);
    options.token = token;
    server_ = std::make_unique<StoreServer>(options);
    if (by_file) {
      file->write(token);
      token_file_ = std::move(file);
    }
  }
  client_ = std::make_unique<StoreClient>(server_ ? own_address(server_->address()) : address, token, name,
                                          deadline);
}

std::vector<WorkerFacts> Rendezvous::join(const WorkerFacts& facts) {
  std::vector<WorkerFacts> all = lockstep::join(*client_, rank_, size_, facts, deadline_);
  // All have it: a run that is killed later leaves nothing on the disk.
  if (token_file_) token_file_->remove();
  return all;
}

Rendezvous::~Rendezvous() {
  if (token_file_) token_file_->remove();
}

}  // namespace lockstep
