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

// Feature vectors, each [B, 1, dim], as [B, F, dim].
Value stack(Layers& b, const std::vector<Value>& features) {
  return b.graph().emit_all("concat", features, {{"axis", int64_t{1}}}).at(0);
}

// Products of every pair of the feature vectors [B, F, dim].
Value pairwise(Layers& b, Value features) {
  return b.op("lower_triangle", {b.matmul(features, features, false, true)});
}

// What the tables give for the categories of a sample, each [B, 1, dim].
std::vector<Value> looked_up(Layers& b, const TabularSizes& sizes) {
  std::vector<Value> rows;
  for (int64_t i = 0; i < sizes.tables; ++i) {
    const Value ids = b.indices(fmt::format("category.{}", i), {sizes.batch}, sizes.rows);
    const Value table = b.uniform(fmt::format("table.{}.weight", i), {sizes.rows, sizes.dim},
                                  1.0 / std::sqrt(static_cast<double>(sizes.rows)));
    rows.push_back(b.reshape(b.embedding(table, ids), {sizes.batch, 1, sizes.dim}));
  }
  return rows;
}

// What the top works on: [B, width].
Value features_of(Layers& b, const TabularSizes& sizes) {
  if (sizes.dense == 0) {
    const Value stacked = stack(b, looked_up(b, sizes));
    const Value flat = b.reshape(stacked, {sizes.batch, sizes.tables * sizes.dim});
    return sizes.tables == 1 ? flat : b.concat({flat, pairwise(b, stacked)}, 1);
  }
  const Value dense = b.input("dense", {DType::kF32, {sizes.batch, sizes.dense}});
  std::vector<int64_t> bottom = sizes.bottom;
  bottom.push_back(sizes.dim);
  const Value bottom_out = mlp(b, "bottom", dense, bottom);
  if (sizes.tables == 0) return bottom_out;
  std::vector<Value> features{b.reshape(bottom_out, {sizes.batch, 1, sizes.dim})};
  for (const Value rows : looked_up(b, sizes)) features.push_back(rows);
  return b.concat({bottom_out, pairwise(b, stack(b, features))}, 1);
}

// The loss of the last layer's numbers and, to evaluate with, what they answer.
void finish(Layers& b, const TabularSizes& sizes, Value x) {
  const bool classify = sizes.task == Task::kClassify;
  const Value labels = classify ? b.indices("labels", {sizes.batch}, sizes.classes)
                                : b.input("labels", {DType::kF32, {sizes.batch}});
  const Value answer = classify ? x : b.reshape(x, {sizes.batch});
  std::vector<Value> compared{answer, labels};
  if (sizes.weighted) compared.push_back(b.input("weights", {DType::kF32, {sizes.batch}}));
  const char* const of_numbers = sizes.task == Task::kRegress ? "mse" : "bce_with_logits";
  const auto loss = b.graph().emit_all(classify ? "cross_entropy" : of_numbers, compared);
  b.graph().add_output(loss[0]);
  b.graph().add_output(loss[1]);
  if (!sizes.training) b.graph().add_output(answer);
}

Task task_of(LabelTask task) {
  switch (task) {
    case LabelTask::kClassification: return Task::kClassify;
    case LabelTask::kRegression: return Task::kRegress;
    case LabelTask::kAuto:
    case LabelTask::kBinary: break;
  }
  return Task::kBinary;
}

}  // namespace

Model build_tabular(const TabularSizes& sizes) {
  LOCKSTEP_CHECK(sizes.dense > 0 || sizes.tables > 0, "a tabular model without inputs");
  Model model{Graph(all_ops(), "tabular"), {}, sizes.batch, 0, {}, sizes.task};
  model.target = sizes.target;
  Layers b(model);
  Value x = mlp(b, "top", features_of(b, sizes), sizes.top);
  const int64_t outputs = sizes.task == Task::kClassify ? sizes.classes : 1;
  x = b.linear(fmt::format("top.{}", sizes.top.size()), x, outputs, he(x, b));
  finish(b, sizes, x);
  return model;
}

ModelFamily tabular_family() {
  const ModelSizes defaults{.dim = 32, .rows = 100000, .bottom = {512, 256}, .top = {512, 256}};
  ModelSizes example = defaults;
  example.tables = 26;
  example.dense = 13;
  return {.name = "tabular",
          .records = Records::kTable,
          .keys = {"dim", "tables", "rows", "dense", "bottom", "top", "task"},
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
                                      .weighted = training && inputs.weighted,
                                      .task = task_of(inputs.task),
                                      .classes = inputs.classes,
                                      .target = inputs.target});
              }};
}

}  // namespace lockstep
