// lockstep schema: what a job file can say, as JSON Schema for editors or as the reference page.
#include "job/schema.h"

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "cli/cli.h"

namespace lockstep {

void add_schema_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("schema", "print the JSON Schema of job files");
  auto markdown = std::make_shared<bool>(false);
  command->add_flag("--markdown", *markdown, "print the reference page, docs/job-file.md");
  command->callback([markdown] { std::cout << (*markdown ? job_reference() : job_schema()); });
}

}  // namespace lockstep
