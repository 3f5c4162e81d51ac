// lockstep compare RUN RUN: two runs side by side, whether their bits agree, and where they first differ.
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "cli/cli.h"
#include "cli/exit.h"
#include "observe/run_compare.h"

namespace lockstep {
namespace {

struct CompareOptions {
  std::string first, second;
  bool same = false;
};

void run_compare(const CompareOptions& options) {
  const RunView first = open_run(options.first), second = open_run(options.second);
  std::cout << comparison_report(first, second);
  if (options.same && !compare_runs(first, second).same_weights.value_or(false)) throw Exit{1};
}

}  // namespace

void add_compare_command(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("compare", "put two runs side by side; say whether their bits agree");
  auto options = std::make_shared<CompareOptions>();
  command->add_option("first", options->first, "a run's folder")->required();
  command->add_option("second", options->second, "another's")->required();
  command->add_flag("--same", options->same, "exit with 1 unless both ended with the same weights");
  command->callback([options] { run_compare(*options); });
}

}  // namespace lockstep
