// lockstep data transforms: what can be done to the columns of a table, by name, with the settings of each.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "cli/data_job.h"
#include "data/transform/settings.h"

namespace lockstep {
namespace {

void print_list() {
  for (const TransformEntry* entry : transform_entries()) {
    if (entry->example.empty()) continue;
    std::cout << fmt::format("{}\n  {}\n  - {}\n", entry->name, entry->does, entry->example);
    for (const TransformSetting& setting : entry->settings)
      std::cout << fmt::format(
          "    {:<11} {} ({})\n", setting.name, setting.value,
          setting.otherwise.empty() ? "required" : fmt::format("otherwise: {}", setting.otherwise));
  }
}

}  // namespace

void add_data_transforms(CLI::App& data) {
  CLI::App* command =
      data.add_subcommand("transforms", "print the transforms there are, each with its settings");
  auto markdown = std::make_shared<bool>(false);
  command->add_flag("--markdown", *markdown, "print the reference page, docs/transforms.md");
  command->callback([markdown] {
    if (*markdown)
      std::cout << transform_reference();
    else
      print_list();
  });
}

}  // namespace lockstep
