// lockstep bench: measurements that the benches in bench/ put beside their peers.
#include <CLI/CLI.hpp>

#include "cli/bench_allreduce.h"
#include "cli/bench_input.h"
#include "cli/bench_order.h"
#include "cli/bench_step.h"
#include "cli/bench_tokenize.h"
#include "cli/cli.h"

namespace lockstep {

void add_bench_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("bench", "measure parts of the engine on synthetic data");
  command->require_subcommand(1);
  add_bench_step_command(*command);
  add_bench_allreduce_command(*command);
  add_bench_input_command(*command, "input");
  add_bench_order_command(*command);
  add_bench_tokenize_command(*command);
}

}  // namespace lockstep
