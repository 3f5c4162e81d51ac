// lockstep serve-reduce: a Reduction Server, which adds up the gradients of a run's workers.
//
// It tells the workers at their rendezvous store where it listens, serves them, and ends with them. One that
// has lost its workers waits for them to come again, as after a restart.
#include <CLI/CLI.hpp>
#include <memory>
#include <optional>

#include "base/error.h"
#include "base/log.h"
#include "base/number_text.h"
#include "cli/cli.h"
#include "cli/exit.h"
#include "launch/families.h"
#include "launch/signal_descriptor.h"
#include "launch/token.h"
#include "reduction/meeting.h"
#include "reduction/server.h"

namespace lockstep {
namespace {

using std::chrono::milliseconds;

struct ServeOptions {
  std::string master_addr;
  std::optional<int64_t> master_port;
  std::string listen;
  bool once = false;
};

HostPort store_address(const ServeOptions& options, const Variables& variables) {
  if (options.master_addr.empty())
    if (const auto store = find_variable(variables, "LOCKSTEP_STORE"))
      return parse_host_port(*store, "LOCKSTEP_STORE");
  const auto cluster = cluster_master(variables);
  const auto given = find_variable(variables, "MASTER_ADDR");
  HostPort address;
  address.host = !options.master_addr.empty() ? options.master_addr
                 : given                      ? std::string(*given)
                 : cluster                    ? cluster->host
                                              : "";
  if (address.host.empty())
    throw UserError("serve-reduce needs the address of worker 0: give --master-addr, or set MASTER_ADDR");
  address.port = options.master_port.value_or(find_integer(variables, "MASTER_PORT", 1, 65535)
                                                  .value_or(cluster ? cluster->port : kDefaultMasterPort));
  return address;
}

std::string need_token(const Variables& variables) {
  std::string token = token_from(variables);
  if (token.empty())
    throw UserError(
        "a Reduction Server and its workers need a secret in common: set LOCKSTEP_TOKEN to the same value "
        "for "
        "all of them, for instance from: openssl rand -hex 16");
  return token;
}

void stop_if_asked(SignalDescriptor& signals) {
  if (const int signal = signals.next(); signal != 0) throw Exit{128 + signal};
}

// The store may come later than the server, and be gone for a while between two starts of a run.
std::unique_ptr<StoreClient> reach_store(const HostPort& address, const std::string& token,
                                         SignalDescriptor& signals) {
  constexpr milliseconds kAttempt{500};
  while (true) {
    stop_if_asked(signals);
    try {
      return std::make_unique<StoreClient>(address, token, "reduction-server-" + random_nonce(), kAttempt);
    } catch (const TokenRefused&) {
      throw;
    } catch (const CommError&) {
      // Not there yet.
    }
  }
}

HostPort listening_address(const ServeOptions& options, const HostPort& store) {
  if (options.listen.empty()) return {reduction::address_towards(store), 0};
  if (options.listen.find(':') == std::string::npos) return {options.listen, 0};
  return parse_host_port(options.listen, "--listen");
}

void tell(const reduction::SessionReport& report) {
  const std::string did = fmt::format("{} chunks for {} workers, {} in, {} out", report.chunks, report.ranks,
                                      bytes_text(report.bytes_in), bytes_text(report.bytes_out));
  if (report.broken)
    log_warn("the session has ended: {}; {}", report.why, did);
  else
    log_info("the run is over: {}", did);
}

void run_serve_reduce(const ServeOptions& options) {
  const Variables variables = process_variables();
  const std::string token = need_token(variables);
  const HostPort store = store_address(options, variables);
  SignalDescriptor signals;
  std::unique_ptr<reduction::ReductionServer> server;
  while (true) {
    {
      const auto client = reach_store(store, token, signals);
      if (!server) {
        server = std::make_unique<reduction::ReductionServer>(
            reduction::ServerOptions{.listen = listening_address(options, store), .token = token});
        log_info("adds up gradients at {}", to_string(server->address()));
      }
      reduction::announce_server(*client, server->address());
    }
    const auto report = server->serve(signals.descriptor());
    if (!report) {
      stop_if_asked(signals);
      continue;
    }
    tell(*report);
    if (!report->broken) return;
    if (options.once) throw Exit{1};
  }
}

}  // namespace

void add_serve_reduce_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "serve-reduce", "a Reduction Server, which adds up the gradients of a run's workers");
  auto options = std::make_shared<ServeOptions>();
  command->add_option("--master-addr", options->master_addr, "the host of worker 0 (default: MASTER_ADDR)");
  command
      ->add_option("--master-port", options->master_port, "where it listens (default: MASTER_PORT, or 29500)")
      ->check(CLI::Range(int64_t{1}, int64_t{65535}));
  command->add_option(
      "--listen", options->listen,
      "address, or address:port, at which workers reach this server (default: the one that leads "
      "to the master)");
  command->add_flag("--once", options->once, "end with the first run, also when it is broken off");
  command->callback([options] { run_serve_reduce(*options); });
}

}  // namespace lockstep
