// lockstep generate RUN|DIR --prompt TEXT: a model continues a text.
#include "use/generate.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "cli/cli.h"
#include "cli/writing_options.h"
#include "use/open_token_text.h"

namespace lockstep {
namespace {

constexpr int64_t kLongestPrompt = 64 << 20;
constexpr int64_t kMostWritten = 128;

struct GenerateCommand : WritingOptions {
  std::string model, prompt, prompt_file;
  bool ids = false, json = false, profile = false;
};

// Where the time of a token goes: by kernel, the slowest first.
void print_profile(const Executable& plan) {
  struct Kernel {
    int64_t nodes = 0;
    double microseconds = 0, bytes = 0;
  };
  std::map<std::string, Kernel> kernels;
  double total = 0;
  for (const ProfileEntry& entry : plan.profile()) {
    if (entry.runs == 0) continue;
    Kernel& kernel = kernels[entry.kernel];
    const double each = static_cast<double>(entry.nanoseconds) / 1e3 / static_cast<double>(entry.runs);
    ++kernel.nodes;
    kernel.microseconds += each;
    kernel.bytes += entry.bytes;
    total += each;
  }
  std::vector<std::pair<std::string, Kernel>> sorted(kernels.begin(), kernels.end());
  std::ranges::sort(sorted, std::greater<>(), [](const auto& one) { return one.second.microseconds; });
  std::cerr << fmt::format("a token    {:.0f} us in kernels\n", total);
  for (const auto& [name, kernel] : sorted)
    std::cerr << fmt::format("  {:<28}{:>4} x {:>8.0f} us {:>5.1f} % {:>7.1f} GB/s\n", name, kernel.nodes,
                             kernel.microseconds, 100 * kernel.microseconds / std::max(total, 1e-9),
                             kernel.bytes / std::max(kernel.microseconds, 1e-9) / 1e3);
}

double per_second(int64_t tokens, double seconds) {
  return static_cast<double>(tokens) / std::max(seconds, 1e-9);
}

void print_generated(const GenerateCommand& command, const std::string& prompt,
                     const std::vector<int32_t>& ids, const Generated& result) {
  nlohmann::ordered_json json;
  if (!command.ids) json["prompt"] = prompt;
  json["prompt_ids"] = ids;
  if (!command.ids) json["text"] = result.text;
  json["ids"] = result.tokens;
  json["ended"] = name_of(result.ended);
  json["prompt_seconds"] = result.prompt_seconds;
  json["seconds"] = result.seconds;
  std::cout << json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
}

void run_generate(const GenerateCommand& command) {
  const std::string prompt =
      command.prompt_file.empty() ? command.prompt : read_file(command.prompt_file, kLongestPrompt);
  GeneratingModel model = GeneratingModel::open(command.model, precision_of(command));
  const auto text = open_token_text(model, command.tokenizer, command.ids);
  const std::vector<int32_t> ids = text->encode(prompt);
  if (ids.empty())
    throw UserError(
        "the prompt has no token; a model continues a text, and needs at least one to begin with");
  GenerateOptions options = generate_options(command, read_generation_config(model.folder()));
  const bool streams = !command.json;
  if (streams) options.show = [](std::string_view part) { std::cout << part << std::flush; };
  const auto say = [&](const std::string& line) {
    if (!command.quiet) std::cerr << line << "\n";
  };
  const int threads = threads_of(command);
  const auto backend = make_cpu_backend(threads);
  const auto count = static_cast<int64_t>(ids.size());
  // The last token is chosen, and not read.
  CachedDecoder decoder(model, *backend, count, count + command.max_tokens - 1,
                        static_cast<int64_t>(command.memory));
  say(fmt::format("model      {}, {} parameters in {}", model.description(), model.parameters(),
                  name_of(model.precision())));
  say(fmt::format("tokens     {}", text_of(options.sampling)));
  if (const int64_t most = model.family().max_positions; decoder.capacity() > most)
    say(fmt::format("           up to {} of them; the model was made for texts of {}", decoder.capacity(),
                    most));
  decoder.set_profiling(command.profile);
  const Generated result = generate(decoder, ids, *text, options);
  if (streams)
    std::cout << "\n";
  else
    print_generated(command, prompt, ids, result);
  const auto written = static_cast<int64_t>(result.tokens.size());
  say(fmt::format("prompt     {} tokens in {:.2f} s ({:.0f} tokens/s on {} threads)", count,
                  result.prompt_seconds, per_second(count, result.prompt_seconds), threads));
  say(fmt::format("written    {} tokens in {:.2f} s ({:.1f} tokens/s), ended by {}", written, result.seconds,
                  per_second(written, result.seconds), name_of(result.ended)));
  if (command.profile) print_profile(*decoder.one_token_plan());
}

}  // namespace

void add_generate_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("generate", "continue a text with a language model");
  auto all = std::make_shared<GenerateCommand>();
  command->add_option("model", all->model, "a Hugging Face folder, a run's folder, or a checkpoint")
      ->required();
  auto* prompt = command->add_option("--prompt", all->prompt, "the text to continue");
  auto* file =
      command->add_option("--prompt-file", all->prompt_file, "the file that holds it")->excludes(prompt);
  add_writing_options(*command, *all, kMostWritten);
  command->add_flag("--ids", all->ids, "the prompt is numbers of tokens, and so is what is printed");
  command->add_flag("--json", all->json, "print one JSON object when all is written");
  command->add_flag("--profile", all->profile, "print where the time of a token goes, by kernel");
  command->callback([all, prompt, file] {
    if (prompt->count() + file->count() == 0)
      throw UserError("there is no prompt; give --prompt TEXT or --prompt-file FILE");
    run_generate(*all);
  });
}

}  // namespace lockstep
