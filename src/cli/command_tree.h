// The commands of the program as plain values, taken from the parser itself: what completion, suggestions and
// help are made of, so that they name what there is.
#pragma once
#include <CLI/App.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

struct CommandOption {
  std::string name;  // with its dashes
  std::string description;
  bool takes_value = false;
  std::vector<std::string> choices;  // where only some values are accepted
};

struct Command {
  std::string path;  // "data synth fraud"; empty for the program itself
  std::string description;
  std::vector<std::string> commands;  // names below it
  std::vector<CommandOption> options;
  std::vector<std::string> choices;  // of its first argument without a name
};

// Every command before those below it.
std::vector<Command> command_tree(const CLI::App& app);
const Command* find_command(const std::vector<Command>& tree, std::string_view path);

// What is unknown in a command line that was refused, with the nearest known name: "unknown command trian;
// did you mean train?". Empty where all names are known.
std::string unknown_name(const CLI::App& app, const std::vector<std::string>& arguments);

}  // namespace lockstep
