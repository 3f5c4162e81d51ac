#include "cli/writing_options.h"

#include <CLI/CLI.hpp>

#include "base/cores.h"
#include "base/error.h"

namespace lockstep {

void add_writing_options(CLI::App& command, WritingOptions& options, int64_t max_tokens) {
  options.max_tokens = max_tokens;
  command.add_option("--max-tokens", options.max_tokens, "write at most so many")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 20))
      ->capture_default_str();
  auto* greedy =
      command.add_flag("--greedy", options.greedy,
                       "the likeliest token each time; the default, unless one of the next four is "
                       "given");
  command.add_flag("--sample", options.sample, "draw tokens by their probabilities")->excludes(greedy);
  command.add_option("--temperature", options.temperature, "divides the logits before a token is drawn")
      ->check(CLI::PositiveNumber)
      ->excludes(greedy);
  command.add_option("--top-k", options.top_k, "draw among the so many likeliest; 0: all (default 50)")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 31))
      ->excludes(greedy);
  command
      .add_option("--top-p", options.top_p, "draw among the likeliest that have this probability together")
      ->check(CLI::Range(1e-9, 1.0))
      ->excludes(greedy);
  command
      .add_option(
          "--repetition-penalty", options.repetition_penalty,
          "makes tokens that occurred less likely, above 1; by default what generation_config.json says")
      ->check(CLI::PositiveNumber);
  command.add_option("--seed", options.seed, "of the draws: the same seed gives the same text");
  command.add_option("--stop", options.stop, "end before this text (may be given several times)")
      ->allow_extra_args(false);
  command.add_flag("--ignore-eos", options.ignore_end, "go on behind tokens that end a text");
  command.add_option("--tokenizer", options.tokenizer,
                     "a folder with tokenizer.json or a SentencePiece .model; by default the model's");
  command.add_option("--precision", options.precision, "fp32, bf16, or auto: that of the weights")
      ->check(CLI::IsMember({"auto", "fp32", "bf16"}))
      ->capture_default_str();
  command.add_option("--threads", options.threads, "by default one per processor; changes no token")
      ->check(CLI::Range(int64_t{1}, int64_t{4096}));
  command
      .add_option("--memory", options.memory,
                  "refuse to take more than this, as in 4GB (default: what is free)")
      ->transform(CLI::AsSizeValue(false));
  command.add_flag("--quiet", options.quiet, "say nothing but the text and errors");
}

GeneratingModel::Precision precision_of(const WritingOptions& options) {
  if (options.precision == "auto") return std::nullopt;
  return options.precision == "bf16" ? DType::kBF16 : DType::kF32;
}

GenerateOptions generate_options(const WritingOptions& options, const GenerationConfig& config) {
  GenerateOptions result{.max_tokens = options.max_tokens};
  result.stop = options.stop;
  if (!options.ignore_end) result.end_tokens = config.end_tokens;
  Sampling& sampling = result.sampling;
  sampling.repetition_penalty = options.repetition_penalty.value_or(config.repetition_penalty.value_or(1));
  sampling.greedy =
      options.greedy || (!options.sample && !options.temperature && !options.top_k && !options.top_p);
  if (sampling.greedy) return result;
  sampling.temperature = options.temperature.value_or(config.temperature.value_or(1));
  sampling.top_k = options.top_k.value_or(config.top_k.value_or(50));
  sampling.top_p = options.top_p.value_or(config.top_p.value_or(1));
  sampling.seed = options.seed;
  return result;
}

int threads_of(const WritingOptions& options) {
  return static_cast<int>(options.threads.value_or(available_cores().usable));
}

std::string text_of(const Sampling& sampling) {
  std::string text = sampling.greedy
                         ? "the likeliest token each time"
                         : fmt::format("drawn with seed {}, temperature {}, top-k {}, top-p {}",
                                       sampling.seed, sampling.temperature, sampling.top_k, sampling.top_p);
  if (sampling.repetition_penalty != 1)
    text += fmt::format(", repetition penalty {}", sampling.repetition_penalty);
  return text;
}

}  // namespace lockstep
