#include "model/tabular.h"

#include <cmath>

#include "base/error.h"
#include "model/family.h"
#include "model/layers.h"
#include "ops/registry.h"

namespace lockstep {
namespace {

double he(Value x, const Layers& b) { return std::sqrt(2.0 / static_cast<double>(b.shape(x)[-1])); }

Value mlp(Layers& b, const std::string& name, Value x, const std::vector<int64_t>& widths) {
  for (size_t layer = 0; layer < widths.size(); ++layer)
    x = b.op("relu", {b.linear(fmt::format("{}.{}", name, layer), x, widths[layer], he(x, b))});
  return x;
}

// Products of every pair of the feature vectors [B, F, dim].
Value pairwise(Layers& b, Value features) {
  return b.op("lower_triangle", {b.matmul(features, features, false, true)});
}

}  // namespace

Model build_tabular(const TabularSizes& sizes) {
  Model model{Graph(all_ops(), "tabular"), {}, sizes.batch, 0, {}, Task::kBinary};
  Layers b(model);
  const Value dense = b.input("dense", {DType::kF32, {sizes.batch, sizes.dense}});
  std::vector<int64_t> bottom = sizes.bottom;
  bottom.push_back(sizes.dim);
  const Value bottom_out = mlp(b, "bottom", dense, bottom);

  std::vector<Value> features{b.reshape(bottom_out, {sizes.batch, 1, sizes.dim})};
  for (int64_t i = 0; i < sizes.tables; ++i) {
    const Value ids = b.indices(fmt::format("category.{}", i), {sizes.batch}, sizes.rows);
    const Value table = b.uniform(fmt::format("table.{}.weight", i), {sizes.rows, sizes.dim},
                                  1.0 / std::sqrt(static_cast<double>(sizes.rows)));
    features.push_back(b.reshape(b.embedding(table, ids), {sizes.batch, 1, sizes.dim}));
  }
  const Value stacked = b.graph().emit_all("concat", features, {{"axis", int64_t{1}}}).at(0);
  Value x = b.concat({bottom_out, pairwise(b, stacked)}, 1);
  x = mlp(b, "top", x, sizes.top);
  x = b.linear(fmt::format("top.{}", sizes.top.size()), x, 1, he(x, b));
  const Value labels = b.input("labels", {DType::kF32, {sizes.batch}});
  const Value logits = b.reshape(x, {sizes.batch});
  std::vector<Value> compared{logits, labels};
  if (sizes.weighted) compared.push_back(b.input("weights", {DType::kF32, {sizes.batch}}));
  const auto loss = b.graph().emit_all("bce_with_logits", compared);
  b.graph().add_output(loss[0]);
  b.graph().add_output(loss[1]);
  if (!sizes.training) b.graph().add_output(logits);
  return model;
}

ModelFamily tabular_family() {
  const ModelSizes defaults{.dim = 32, .rows = 100000, .bottom = {512, 256}, .top = {512, 256}};
  ModelSizes example = defaults;
  example.tables = 26;
  example.dense = 13;
  return {.name = "tabular",
          .records = Records::kTable,
          .keys = {"dim", "tables", "rows", "dense", "bottom", "top"},
          .defaults = defaults,
          .examples = {{"tabular", example, 2048}},
          .check = [](const ModelSizes&) -> std::optional<SizeProblem> { return std::nullopt; },
          .build =
              [](const ModelSizes& sizes, const InputSizes& inputs, int64_t batch, bool training) {
                return build_tabular({.tables = sizes.tables.value_or(inputs.tables),
                                      .rows = sizes.rows,
                                      .dim = sizes.dim,
                                      .dense = sizes.dense.value_or(inputs.dense),
                                      .bottom = sizes.bottom,
                                      .top = sizes.top,
                                      .batch = batch,
                                      .training = training,
                                      .weighted = training && inputs.weighted});
              }};
}

}  // namespace lockstep
