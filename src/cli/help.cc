// lockstep help [TOPIC|COMMAND|KEY]: short texts, a command's own help, or a key of the job file.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>

#include "base/error.h"
#include "base/nearest.h"
#include "cli/cli.h"
#include "cli/command_tree.h"
#include "cli/help_topics.h"
#include "job/fields.h"
#include "job/key_help.h"

namespace lockstep {
namespace {

// Not App::help(), which shows the help of the command at hand: that is `help`.
std::string help_of(const CLI::App& app, const std::string& path) {
  return app.get_formatter()->make_help(&app, path, CLI::AppFormatMode::Normal);
}

// The command that the words name, one below the other; null where they name none.
const CLI::App* command_named(const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App* at = &app;
  for (const std::string& word : words) {
    const auto below = at->get_subcommands([&](const CLI::App* each) { return each->get_name() == word; });
    if (below.empty()) return nullptr;
    at = below[0];
  }
  return at;
}

std::string overview(const CLI::App& app) {
  std::string text = help_of(app, "lockstep") + "\nTopics: lockstep help TOPIC\n";
  for (const HelpTopic& topic : help_topics()) text += fmt::format("  {:<26}{}\n", topic.name, topic.summary);
  return text + fmt::format("  {:<26}a key of the job file, or a section of it\n", "train.lr.base, train.lr");
}

[[noreturn]] void refuse_topic(const CLI::App& app, const std::string& wanted) {
  std::vector<std::string> names = help_topic_names();
  for (const Command& command : command_tree(app))
    if (!command.path.empty()) names.push_back(command.path);
  for (const Field& field : job_fields()) names.emplace_back(field.path());
  const std::vector<std::string_view> known(names.begin(), names.end());
  const std::string nearest = suggestion(wanted, known);
  throw UserError("there is no help on {}; {}", wanted,
                  nearest.starts_with("did you mean") ? nearest : "lockstep help lists the topics");
}

void run_help(const CLI::App& app, const std::vector<std::string>& words) {
  const std::string wanted = fmt::format("{}", fmt::join(words, " "));
  if (words.empty()) {
    std::cout << overview(app);
    return;
  }
  for (const HelpTopic& topic : help_topics())
    if (topic.name == wanted) {
      std::cout << topic.text;
      if (command_named(app, words) != nullptr)
        std::cout << fmt::format("\nThe command of this name: lockstep {} --help\n", wanted);
      return;
    }
  const std::string keys = words.size() == 1 ? key_help(wanted) : "";
  if (const CLI::App* command = command_named(app, words)) {
    std::cout << help_of(*command, "lockstep " + wanted);
    // `train` and `data` are sections of the job file too.
    if (!keys.empty()) std::cout << fmt::format("\nThe section of the job file:\n\n{}", keys);
    return;
  }
  if (keys.empty()) refuse_topic(app, wanted);
  std::cout << keys;
}

}  // namespace

void add_help_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("help", "explain a topic, a command, or a key of the job file");
  auto words = std::make_shared<std::vector<std::string>>();
  command->add_option("topic", *words, "a topic, a command, or a key such as train.lr.base");
  command->callback([words, &app] { run_help(app, *words); });
}

}  // namespace lockstep
