#include "cli/model_options.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "base/error.h"
#include "base/nearest.h"
#include "model/family.h"

namespace lockstep {
namespace {

std::vector<std::string_view> example_names() {
  std::vector<std::string_view> names;
  for (const ModelFamily* family : model_families())
    for (const ModelExample& example : family->examples) names.push_back(example.name);
  return names;
}

// The example's sizes with those that the command line gives.
ModelSizes sizes_of(const ModelExample& example, const ModelOptions& options) {
  ModelSizes sizes = example.sizes;
  const auto replace = [](auto& size, int64_t wanted) {
    if (wanted != 0) size = wanted;
  };
  replace(sizes.layers, options.layers);
  replace(sizes.dim, options.dim);
  replace(sizes.heads, options.heads);
  replace(sizes.kv_heads, options.kv_heads);
  replace(sizes.hidden, options.hidden);
  replace(sizes.vocab, options.vocab);
  replace(sizes.seq, options.seq);
  replace(sizes.image, options.image);
  replace(sizes.tables, options.tables);
  replace(sizes.rows, options.rows);
  sizes.dropout = options.dropout;
  return sizes;
}

}  // namespace

void add_model_options(CLI::App& command, ModelOptions& options) {
  const auto size = [&](const char* flag, int64_t& field, const char* help) {
    command.add_option(flag, field, help)->check(CLI::PositiveNumber)->group("Model sizes");
  };
  size("--layers", options.layers, "transformer blocks");
  size("--dim", options.dim, "width; for tabular, of an embedding");
  size("--heads", options.heads, "attention heads");
  size("--kv-heads", options.kv_heads, "heads of keys and values");
  size("--hidden", options.hidden, "width of a block's MLP");
  size("--vocab", options.vocab, "vocabulary");
  size("--batch", options.batch, "samples in a microbatch");
  size("--seq", options.seq, "positions in a sample");
  size("--image", options.image, "pixels along an image's side");
  size("--tables", options.tables, "categorical tables");
  size("--rows", options.rows, "rows of a table");
  command.add_option("--dropout", options.dropout, "probability of dropping")
      ->check(CLI::Range(0.0, 0.99))
      ->group("Model sizes");
}

bool is_model_name(const std::string& name) { return std::ranges::count(example_names(), name) > 0; }
std::string model_names() { return fmt::format("{}", fmt::join(example_names(), ", ")); }

Model build_model(const ModelOptions& options) {
  for (const ModelFamily* family : model_families())
    for (const ModelExample& example : family->examples) {
      if (example.name != options.model) continue;
      const ModelSizes sizes = sizes_of(example, options);
      if (const auto problem = family->check(sizes)) {
        std::string flag(problem->key);
        std::ranges::replace(flag, '_', '-');
        throw UserError("{}: --{} {} {}", example.name, flag, problem->value, problem->problem);
      }
      return family->build(sizes, {}, options.batch != 0 ? options.batch : example.batch, true);
    }
  throw UserError("unknown model {}; {}", options.model, suggestion(options.model, example_names()));
}

}  // namespace lockstep
