// lockstep init --template NAME [FILE]: a commented job file that runs as it is.
#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <memory>

#include "base/error.h"
#include "base/file.h"
#include "cli/cli.h"
#include "job/templates.h"

namespace lockstep {
namespace {

struct InitOptions {
  std::string name;
  std::string file;
};

void run_init(const InitOptions& options) {
  const JobTemplate& chosen = find_template(options.name);
  if (options.file.empty()) {
    std::cout << chosen.text;
    return;
  }
  if (std::filesystem::exists(std::filesystem::symlink_status(options.file)))
    throw UserError("{} is there already; give another name, or remove it first", options.file);
  write_file(options.file, chosen.text);
  std::cout << fmt::format("wrote {}; look at it with: lockstep check {}\n", options.file, options.file);
}

}  // namespace

void add_init_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("init", "write a commented job file that runs as it is");
  auto options = std::make_shared<InitOptions>();
  std::vector<std::string_view> names;
  for (const JobTemplate& one : job_templates()) names.push_back(one.name);
  command->add_option("--template", options->name, fmt::format("{}", fmt::join(names, ", ")))->required();
  command->add_option("file", options->file, "where to write it; without, to standard output");
  command->callback([options] { run_init(*options); });
}

}  // namespace lockstep
