// lockstep version.
#include <CLI/CLI.hpp>
#include <iostream>

#include "cli/cli.h"

namespace lockstep {

void add_version_command(CLI::App& app) {
  app.add_subcommand("version", "print the version")->callback([] { std::cout << "lockstep 0.1.0\n"; });
}

}  // namespace lockstep
