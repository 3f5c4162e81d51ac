// Model sizes on the command line, shared by `graph` and `bench step`.
#pragma once
#include <CLI/App.hpp>
#include <memory>
#include <string>

#include "model/model.h"

namespace lockstep {

struct ModelOptions {
  std::string model = "gpt";
  int64_t layers = 0, dim = 0, heads = 0, vocab = 0, batch = 0, seq = 0;  // 0: the family's default
  int64_t kv_heads = 0, hidden = 0, image = 0, tables = 0, rows = 0;
  double dropout = 0;
};

// Adds --layers, --dim ... to a subcommand.
void add_model_options(CLI::App& command, ModelOptions& options);
// One of the families' examples, such as gpt-small or resnet50. Throws UserError for other names.
Model build_model(const ModelOptions& options);
bool is_model_name(const std::string& name);
std::string model_names();

}  // namespace lockstep
