#include "cli/model_options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/nearest.h"
#include "model/encoder.h"
#include "model/gpt.h"
#include "model/resnet.h"
#include "model/tabular.h"

namespace lockstep {
namespace {

constexpr std::array<std::string_view, 6> kModels = {"gpt",     "gpt-small", "encoder",
                                                     "tabular", "resnet18",  "resnet50"};

void override(int64_t& field, int64_t wanted) {
  if (wanted != 0) field = wanted;
}

Model gpt(const ModelOptions& options) {
  GptSizes sizes;
  if (options.model == "gpt-small") sizes = {4, 64, 4, 256, 8, 64, 0.0};
  override(sizes.layers, options.layers);
  override(sizes.dim, options.dim);
  override(sizes.heads, options.heads);
  override(sizes.vocab, options.vocab);
  override(sizes.batch, options.batch);
  override(sizes.seq, options.seq);
  sizes.dropout = options.dropout;
  return build_gpt(sizes);
}

Model encoder(const ModelOptions& options) {
  EncoderSizes sizes;
  override(sizes.layers, options.layers);
  override(sizes.dim, options.dim);
  if (options.dim != 0) sizes.hidden = 4 * options.dim;
  override(sizes.heads, options.heads);
  override(sizes.vocab, options.vocab);
  override(sizes.batch, options.batch);
  override(sizes.seq, options.seq);
  sizes.dropout = options.dropout;
  return build_encoder(sizes);
}

Model tabular(const ModelOptions& options) {
  TabularSizes sizes;
  override(sizes.tables, options.tables);
  override(sizes.rows, options.rows);
  override(sizes.dim, options.dim);
  override(sizes.batch, options.batch);
  return build_tabular(sizes);
}

Model resnet(const ModelOptions& options) {
  ResnetSizes sizes;
  sizes.depth = options.model == "resnet50" ? 50 : 18;
  override(sizes.image, options.image);
  override(sizes.batch, options.batch);
  return build_resnet(sizes);
}

}  // namespace

void add_model_options(CLI::App& command, ModelOptions& options) {
  const auto size = [&](const char* flag, int64_t& field, const char* help) {
    command.add_option(flag, field, help)->check(CLI::PositiveNumber)->group("Model sizes");
  };
  size("--layers", options.layers, "transformer blocks");
  size("--dim", options.dim, "width; for tabular, of an embedding");
  size("--heads", options.heads, "attention heads");
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

bool is_model_name(const std::string& name) {
  return std::find(kModels.begin(), kModels.end(), name) != kModels.end();
}
std::string model_names() { return fmt::format("{}", fmt::join(kModels, ", ")); }

Model build_model(const ModelOptions& options) {
  if (!is_model_name(options.model))
    throw UserError("unknown model {}; {}", options.model, suggestion(options.model, kModels));
  if (options.model.starts_with("gpt")) return gpt(options);
  if (options.model == "encoder") return encoder(options);
  if (options.model == "tabular") return tabular(options);
  return resnet(options);
}

}  // namespace lockstep
