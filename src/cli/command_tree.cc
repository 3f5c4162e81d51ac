#include "cli/command_tree.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "base/nearest.h"

namespace lockstep {
namespace {

// As the parser shows them: "TEXT:{csv,jsonl}".
std::vector<std::string> choices_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const size_t begin = type.find('{'), end = type.rfind('}');
  std::vector<std::string> choices;
  if (begin == std::string::npos || end == std::string::npos || end < begin) return choices;
  std::string rest = type.substr(begin + 1, end - begin - 1);
  for (size_t comma = 0; comma != std::string::npos;) {
    comma = rest.find(',');
    choices.push_back(rest.substr(0, comma));
    if (comma != std::string::npos) rest.erase(0, comma + 1);
  }
  return choices;
}

void add_command(const CLI::App& app, const std::string& path, std::vector<Command>& tree) {
  Command command{path, app.get_description(), {}, {}, {}};
  for (const CLI::Option* option : app.get_options()) {
    if (!option->nonpositional()) {
      if (command.choices.empty()) command.choices = choices_of(*option);
      continue;
    }
    const bool takes_value = option->get_items_expected_max() > 0;
    for (const std::string& name : option->get_lnames())
      command.options.push_back({"--" + name, option->get_description(), takes_value, choices_of(*option)});
    for (const std::string& name : option->get_snames())
      command.options.push_back({"-" + name, option->get_description(), takes_value, choices_of(*option)});
  }
  const std::vector<const CLI::App*> below = app.get_subcommands([](const CLI::App*) { return true; });
  for (const CLI::App* each : below) command.commands.push_back(each->get_name());
  tree.push_back(std::move(command));
  for (const CLI::App* each : below)
    add_command(*each, path.empty() ? each->get_name() : fmt::format("{} {}", path, each->get_name()), tree);
}

std::vector<std::string_view> views(const std::vector<std::string>& names) {
  return {names.begin(), names.end()};
}

std::string program_and(const std::string& path) {
  return path.empty() ? "lockstep" : fmt::format("lockstep {}", path);
}

std::string unknown_option(const Command& command, const std::string& name) {
  std::vector<std::string_view> known;
  for (const CommandOption& option : command.options)
    if (option.name.starts_with("--")) known.push_back(option.name);
  return fmt::format("unknown option {} of {}; {}", name, program_and(command.path), suggestion(name, known));
}

}  // namespace

std::vector<Command> command_tree(const CLI::App& app) {
  std::vector<Command> tree;
  add_command(app, "", tree);
  return tree;
}

const Command* find_command(const std::vector<Command>& tree, std::string_view path) {
  const auto found =
      std::find_if(tree.begin(), tree.end(), [&](const Command& command) { return command.path == path; });
  return found == tree.end() ? nullptr : &*found;
}

std::string unknown_name(const CLI::App& app, const std::vector<std::string>& arguments) {
  const std::vector<Command> tree = command_tree(app);
  const Command* at = tree.data();
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    if (word == "--") return "";
    if (word.starts_with("--")) {
      const std::string name = word.substr(0, word.find('='));
      const auto option = std::find_if(at->options.begin(), at->options.end(),
                                       [&](const CommandOption& each) { return each.name == name; });
      if (option == at->options.end()) return unknown_option(*at, name);
      if (option->takes_value && name == word) ++i;  // its value
      continue;
    }
    if (at->commands.empty() || word.starts_with('-')) continue;
    const Command* below = find_command(tree, at->path.empty() ? word : fmt::format("{} {}", at->path, word));
    if (below == nullptr)
      return fmt::format("unknown command {}; {}",
                         at->path.empty() ? word : fmt::format("{} {}", at->path, word),
                         suggestion(word, views(at->commands)));
    at = below;
  }
  return "";
}

}  // namespace lockstep
