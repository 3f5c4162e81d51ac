// lockstep completion bash|zsh: a script for the shell that completes commands, options, their values and the
// keys of job files.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "cli/cli.h"
#include "cli/command_tree.h"
#include "cli/help_topics.h"
#include "job/fields.h"

namespace lockstep {
namespace {

std::string shell_quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::string job_keys() {
  std::string keys;
  for (const Field& field : job_fields())
    if (!field.is_ignored() && field.path().find('[') == std::string_view::npos)
      keys += fmt::format("{}{}=", keys.empty() ? "" : " ", field.path());
  return keys;
}

// What may stand where no option does.
std::string argument_words(const Command& command) {
  if (command.path == "help") return fmt::format("{}", fmt::join(help_topic_names(), " "));
  if (!command.commands.empty()) return fmt::format("{}", fmt::join(command.commands, " "));
  return fmt::format("{}", fmt::join(command.choices, " "));
}

// Cases of a command and the option before the word: those with known values, then those with any.
struct ValueCases {
  std::string known;  // lines
  std::string free;   // patterns, separated by |
};

ValueCases value_cases(const std::vector<Command>& tree, std::string_view take) {
  ValueCases cases;
  std::string sets;
  for (const Command& command : tree)
    for (const CommandOption& option : command.options) {
      if (!option.takes_value) continue;
      const std::string pattern = shell_quoted(fmt::format("{} {}", command.path, option.name));
      if (option.name == "--set")
        sets += (sets.empty() ? "" : "|") + pattern;
      else if (option.choices.empty())
        cases.free += (cases.free.empty() ? "" : "|") + pattern;
      else
        cases.known += fmt::format("    {}) {} ;;\n", pattern,
                                   fmt::format(fmt::runtime(take), fmt::join(option.choices, " ")));
    }
  if (!sets.empty()) cases.known += fmt::format("    {}) keys ;;\n", sets);
  return cases;
}

std::string paths_pattern(const std::vector<Command>& tree) {
  std::string patterns;
  for (const Command& command : tree)
    if (!command.path.empty()) patterns += (patterns.empty() ? "" : "|") + shell_quoted(command.path);
  return patterns;
}

void replace_all(std::string& text, std::string_view what, std::string_view with) {
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + with.size()))
    text.replace(at, what.size(), with);
}

constexpr std::string_view kBash = R"(# Completion of lockstep for bash, printed by: lockstep completion bash
# In ~/.bashrc: source <(lockstep completion bash)
_lockstep() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} at='' next words='' i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; ++i)); do
    next=${at:+$at }${COMP_WORDS[i]}
    case $next in
      @PATHS@) at=$next ;;
    esac
  done
  case "$at $before" in
@VALUES@    @FREE@) return ;;
    *)
      if [[ $word == -* ]]; then
        case $at in
@OPTIONS@        esac
      else
        case $at in
@ARGUMENTS@        esac
      fi
      ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}
complete -o bashdefault -o default -F _lockstep lockstep
)";

constexpr std::string_view kZsh = R"(#compdef lockstep
# Completion of lockstep for zsh, printed by: lockstep completion zsh
# In a folder of $fpath under the name _lockstep, or in ~/.zshrc: source <(lockstep completion zsh)
_lockstep() {
  local at='' next i
  local -a found
  for ((i = 2; i < CURRENT; ++i)); do
    next=${at:+$at }${words[i]}
    case $next in
      (@PATHS@) at=$next ;;
    esac
  done
  case "$at ${words[CURRENT-1]}" in
@VALUES@    (@FREE@) _files; return ;;
  esac
  if [[ $PREFIX == -* ]]; then
    case $at in
@OPTIONS@    esac
    _describe option found
    return
  fi
  case $at in
@ARGUMENTS@  esac
  if (( $#found )); then _describe command found; else _files; fi
}
if [[ ${funcstack[1]} == _lockstep ]]; then _lockstep "$@"; else compdef _lockstep lockstep; fi
)";

std::string bash_script(const std::vector<Command>& tree) {
  std::string options, arguments;
  for (const Command& command : tree) {
    std::vector<std::string_view> names;
    for (const CommandOption& option : command.options) names.push_back(option.name);
    options += fmt::format("          {}) words={} ;;\n", shell_quoted(command.path),
                           shell_quoted(fmt::format("{}", fmt::join(names, " "))));
    if (const std::string words = argument_words(command); !words.empty())
      arguments +=
          fmt::format("          {}) words={} ;;\n", shell_quoted(command.path), shell_quoted(words));
  }
  ValueCases values = value_cases(tree, "words='{}'");
  replace_all(values.known, ") keys ;;",
              fmt::format(") words={}; compopt -o nospace 2>/dev/null ;;", shell_quoted(job_keys())));
  std::string text(kBash);
  replace_all(text, "@PATHS@", paths_pattern(tree));
  replace_all(text, "@VALUES@", values.known);
  replace_all(text, "@FREE@", values.free);
  replace_all(text, "@OPTIONS@", options);
  replace_all(text, "@ARGUMENTS@", arguments);
  return text;
}

// A name and what it is for, as _describe takes it.
std::string described(std::string_view name, std::string_view description) {
  return shell_quoted(description.empty() ? std::string(name) : fmt::format("{}:{}", name, description));
}

std::string zsh_script(const std::vector<Command>& tree) {
  std::string options, arguments;
  for (const Command& command : tree) {
    std::vector<std::string> entries;
    for (const CommandOption& option : command.options)
      entries.push_back(described(option.name, option.description));
    options += fmt::format("      ({}) found=({}) ;;\n", shell_quoted(command.path), fmt::join(entries, " "));
    entries.clear();
    for (const std::string& name : command.commands) {
      const Command* below =
          find_command(tree, command.path.empty() ? name : fmt::format("{} {}", command.path, name));
      entries.push_back(described(name, below->description));
    }
    if (!entries.empty())
      arguments +=
          fmt::format("    ({}) found=({}) ;;\n", shell_quoted(command.path), fmt::join(entries, " "));
    else if (const std::string words = argument_words(command); !words.empty())
      arguments += fmt::format("    ({}) found=({}) ;;\n", shell_quoted(command.path), words);
  }
  ValueCases values = value_cases(tree, "compadd -- {}; return");
  replace_all(values.known, "    '", "    ('");
  replace_all(values.known, ") keys ;;", fmt::format(") compadd -S '' -- {}; return ;;", job_keys()));
  std::string text(kZsh);
  replace_all(text, "@PATHS@", paths_pattern(tree));
  replace_all(text, "@VALUES@", values.known);
  replace_all(text, "@FREE@", values.free);
  replace_all(text, "@OPTIONS@", options);
  replace_all(text, "@ARGUMENTS@", arguments);
  return text;
}

}  // namespace

void add_completion_command(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("completion", "print a script that completes command lines in a shell");
  auto shell = std::make_shared<std::string>();
  command->add_option("shell", *shell, "bash or zsh")->required()->check(CLI::IsMember({"bash", "zsh"}));
  command->callback([shell, &app] {
    const std::vector<Command> tree = command_tree(app);
    std::cout << (*shell == "bash" ? bash_script(tree) : zsh_script(tree));
  });
}

}  // namespace lockstep
