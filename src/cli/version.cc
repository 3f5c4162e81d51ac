// lockstep version.
#include "base/version.h"

#include <CLI/CLI.hpp>
#include <iostream>

#include "cli/cli.h"

namespace lockstep {

void add_version_command(CLI::App& app) {
  app.add_subcommand("version", "print the version")->callback([] {
    std::cout << "lockstep " << kVersion << "\n";
  });
}

}  // namespace lockstep
