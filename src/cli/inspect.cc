// lockstep inspect DIR|FILE: what a model's folder or a file of tensors holds. Touches nothing.
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "cli/cli.h"
#include "use/inspect_model.h"

namespace lockstep {

void add_inspect_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "inspect",
      "print what a Hugging Face folder, an adapter or a safetensors file holds, and what training it takes");
  auto options = std::make_shared<FolderInspection>();
  command
      ->add_option("path", options->path,
                   "a folder with config.json or adapter_config.json, or a .safetensors file")
      ->required();
  command->add_option("--workers", options->workers, "among how many ZeRO would divide the state")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 20));
  command->callback([options] { std::cout << inspect_model(*options); });
}

}  // namespace lockstep
