// lockstep serve-params: a parameter server, which holds a part of the model of an asynchronous run.
//
// The coordinator (`lockstep train` of a job with strategy.mode async) starts as many as the job asks for. It
// tells the coordinator where it listens, serves the run, and ends with it.
#include <CLI/CLI.hpp>
#include <memory>

#include "async/param_server.h"
#include "base/error.h"
#include "base/log.h"
#include "cli/cli.h"
#include "cli/exit.h"
#include "launch/signal_descriptor.h"
#include "launch/token.h"
#include "run/async_coordinator.h"

namespace lockstep {
namespace {

struct ServeParamsOptions {
  std::string coordinator;
  std::string listen = "127.0.0.1";
  int64_t index = 0;
  int threads = 1;
};

void run_serve_params(const ServeParamsOptions& given) {
  const Variables variables = process_variables();
  const std::string token = token_from(variables);
  if (token.empty())
    throw UserError(
        "a parameter server needs the run's secret: set LOCKSTEP_TOKEN to that of the coordinator");
  std::string address = given.coordinator;
  if (address.empty()) address = std::string(find_variable(variables, kCoordinatorVariable).value_or(""));
  if (address.empty())
    throw UserError("serve-params needs the address of the coordinator: give --coordinator, or set {}",
                    kCoordinatorVariable);
  const SignalDescriptor signals;
  async::ParamServer server({.coordinator = parse_host_port(address, "--coordinator"),
                             .listen = given.listen.find(':') == std::string::npos
                                           ? HostPort{given.listen, 0}
                                           : parse_host_port(given.listen, "--listen"),
                             .token = token,
                             .index = given.index,
                             .threads = given.threads});
  const async::ServedReport report = server.serve(signals.descriptor());
  if (report.stopped) throw Exit{143};
  log_debug("the run is over ({}): version {}, {} updates", report.why, report.version, report.updates);
}

}  // namespace

void add_serve_params_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "serve-params", "a parameter server, which holds a part of the model of an asynchronous run");
  auto options = std::make_shared<ServeParamsOptions>();
  command->add_option("--coordinator", options->coordinator,
                      "address:port of the run's coordinator (default: LOCKSTEP_COORDINATOR)");
  command->add_option("--index", options->index, "which of the run's servers this is, from 1; 0: any")
      ->check(CLI::Range(int64_t{0}, int64_t{256}));
  command->add_option("--listen", options->listen,
                      "address, or address:port, at which workers reach this server (default: 127.0.0.1)");
  command->add_option("--threads", options->threads, "threads that update (default: 1)")
      ->check(CLI::Range(1, 4096));
  command->callback([options] { run_serve_params(*options); });
}

}  // namespace lockstep
