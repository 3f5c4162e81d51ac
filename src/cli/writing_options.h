// The options that `generate` and `chat` share: how tokens are chosen, and with what the model computes.
#pragma once
#include <CLI/App.hpp>
#include <memory>
#include <optional>
#include <string>

#include "model/hf/generation_config.h"
#include "use/generate.h"

namespace lockstep {

struct WritingOptions {
  int64_t max_tokens = 0;
  bool greedy = false, sample = false, ignore_end = false, quiet = false;
  std::optional<double> temperature, top_p, repetition_penalty;
  std::optional<int64_t> top_k, threads;
  uint64_t seed = 0, memory = 0;
  std::vector<std::string> stop;
  std::string precision = "auto", tokenizer;
};

void add_writing_options(CLI::App& command, WritingOptions& options, int64_t max_tokens);

GeneratingModel::Precision precision_of(const WritingOptions& options);
// What is asked for, then what the model's folder says, then what transformers does.
GenerateOptions generate_options(const WritingOptions& options, const GenerationConfig& config);
int threads_of(const WritingOptions& options);
std::string text_of(const Sampling& sampling);

}  // namespace lockstep
