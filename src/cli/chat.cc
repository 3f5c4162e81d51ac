// lockstep chat DIR: a conversation with a model, a line at a time from standard input.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>

#include "base/error.h"
#include "chat/chat_encoder.h"
#include "cli/cli.h"
#include "cli/writing_options.h"
#include "observe/terminal.h"
#include "use/open_token_text.h"

namespace lockstep {
namespace {

constexpr int64_t kMostAnswered = 512;
// Tokens of a conversation where neither the model nor the user says less: the cache is planned for all.
constexpr int64_t kUsualContext = 4096;

struct ChatCommand : WritingOptions {
  std::string model, system, chat_template = std::string(kOwnChatTemplate);
  std::optional<int64_t> context;
};

JinjaValue message(std::string_view role, std::string text) {
  JinjaDict dict;
  dict.put("role", role);
  dict.put("content", JinjaValue(std::move(text)));
  return JinjaValue(std::move(dict));
}

void run_chat(const ChatCommand& command) {
  GeneratingModel model = GeneratingModel::open(command.model, precision_of(command));
  const std::string where = command.tokenizer.empty() ? model.folder() : command.tokenizer;
  const std::shared_ptr<const Tokenizer> tokenizer = Tokenizer::open(where);
  const ChatEncoder chat(tokenizer, find_chat_template(command.chat_template, where), ChatLoss::kAll);
  const auto text = open_token_text(model, where, false);
  GenerateOptions options = generate_options(command, read_generation_config(model.folder()));
  options.show = [](std::string_view part) { std::cout << part << std::flush; };
  const int64_t context = command.context.value_or(std::min(model.family().max_positions, kUsualContext));
  const auto backend = make_cpu_backend(threads_of(command));
  // Lines are seldom long; a longer one is planned when it comes.
  CachedDecoder decoder(model, *backend, std::min<int64_t>(context, 64), context,
                        static_cast<int64_t>(command.memory));
  if (!command.quiet)
    std::cerr << fmt::format("model      {}, {} parameters in {}\ntokens     {}\n", model.description(),
                             model.parameters(), name_of(model.precision()), text_of(options.sampling));

  JinjaList messages;
  if (!command.system.empty()) messages.push_back(message("system", command.system));
  const bool asks = is_terminal(0) && !command.quiet;
  for (std::string line; (asks ? std::cerr << "> " : std::cerr) && std::getline(std::cin, line);) {
    if (line.empty()) continue;
    messages.push_back(message("user", line));
    // A template writes the tokens that frame a text itself.
    const std::vector<int32_t> ids = tokenizer->encode(chat.text_of(JinjaValue(messages), true), false);
    if (std::ssize(ids) >= context)
      throw UserError(
          "the conversation has come to {} tokens, and there is room for {}; start anew, or give more "
          "with --context",
          ids.size(), context);
    const Generated answer = generate(decoder, ids, *text, options);
    std::cout << std::endl;
    options.first_draw += std::ssize(answer.tokens);
    messages.push_back(message("assistant", answer.text));
  }
}

}  // namespace

void add_chat_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("chat", "talk to a language model, a line at a time");
  auto all = std::make_shared<ChatCommand>();
  command->add_option("model", all->model, "a Hugging Face folder, a run's folder, or a checkpoint")
      ->required();
  command->add_option("--system", all->system, "what the model is told first");
  command->add_option(
      "--template", all->chat_template,
      "how a conversation is written: auto, that of the model's folder, or a name such as chatml");
  command
      ->add_option("--context", all->context,
                   "tokens of the whole conversation (default 4096, or what the "
                   "model was made for)")
      ->check(CLI::Range(int64_t{2}, int64_t{1} << 24));
  add_writing_options(*command, *all, kMostAnswered);
  command->callback([all] { run_chat(*all); });
}

}  // namespace lockstep
