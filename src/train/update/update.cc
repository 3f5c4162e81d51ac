#include "train/update/update.h"

#include <algorithm>

#include "base/error.h"
#include "ops/builder.h"
#include "ops/norm_parts.h"
#include "ops/registry.h"

namespace lockstep {
namespace {

// The buffers of one table: parameter, moments, last steps.
std::vector<Value> add_table_inputs(Graph& graph, const RowTable& table) {
  const Type values{DType::kF32, table.table};
  return {graph.add_input(table.name, values, Role::kParam),
          graph.add_input(moment1_name(table.name), values, Role::kState),
          graph.add_input(moment2_name(table.name), values, Role::kState),
          graph.add_input(last_step_name(table.name), {DType::kI32, {table.table[0]}}, Role::kState)};
}

Value add_gradient_rows(Graph& graph, const RowTable& table) {
  return graph.add_input(grad_rows_name(table.name), {DType::kF32, {table.ids, table.table[1]}}, Role::kGrad);
}

// The outputs of a norm's graph, from the norm of the sums.
void add_scale(Graph& graph, Value sums_norm, const OptimizerSettings& settings) {
  Builder b(graph);
  const Value count = b.input("count", {DType::kI64, {}});
  const Value one = b.constant(1.0, {DType::kF32, {}});
  const Value inverse_count = b.div(one, b.cast(count, DType::kF32));
  const Value norm = b.mul(sums_norm, inverse_count);
  Value scale = inverse_count;
  if (settings.clip_norm > 0) {
    // torch.nn.utils.clip_grad_norm_: max_norm / (norm + 1e-6), never above 1.
    const Value limit = b.constant(settings.clip_norm, {DType::kF32, {}});
    scale = b.mul(scale, b.op("minimum", {one, b.div(limit, b.shift(norm, 1e-6))}));
  }
  graph.add_output(norm);
  graph.add_output(scale);
}

}  // namespace

std::string moment1_name(std::string_view param) { return fmt::format("moment1.{}", param); }
std::string moment2_name(std::string_view param) { return fmt::format("moment2.{}", param); }
std::string last_step_name(std::string_view param) { return fmt::format("last_step.{}", param); }

Graph build_norm(const FlatLayout& layout, const std::vector<RowTable>& tables,
                 const OptimizerSettings& settings) {
  Graph graph(all_ops(), "norm");
  std::vector<Value> gradients{graph.add_input("grads", {layout.dtype(), {layout.numel()}}, Role::kGrad)};
  for (const RowTable& table : tables) gradients.push_back(add_gradient_rows(graph, table));
  add_scale(graph, graph.emit_all("global_norm", gradients).at(0), settings);
  return graph;
}

std::string piece_name(size_t piece) { return fmt::format("grads.{}", piece); }

Graph build_square_sums(DType dtype, const std::vector<Slice>& pieces) {
  Graph graph(all_ops(), "square_sums");
  std::vector<Value> gradients;
  for (size_t i = 0; i < pieces.size(); ++i)
    if (pieces[i].size() > 0)
      gradients.push_back(graph.add_input(piece_name(i), {dtype, {pieces[i].size()}}, Role::kGrad));
  graph.add_output(graph.emit_all("square_sums", gradients).at(0));
  return graph;
}

Graph build_norm_of_squares(const FlatLayout& layout, const std::vector<RowTable>& tables,
                            const OptimizerSettings& settings) {
  Graph graph(all_ops(), "norm");
  const int64_t parts = norm_part_count(layout.numel());
  std::vector<Value> squares{graph.add_input("squares", {DType::kU8, {parts * kNormPartBytes}}, Role::kGrad)};
  for (const RowTable& table : tables)
    squares.push_back(graph.emit("square_sums", {add_gradient_rows(graph, table)}));
  add_scale(graph, graph.emit_all("norm_of_squares", squares).at(0), settings);
  return graph;
}

Graph build_update(const FlatLayout& layout, Slice part, const std::vector<ParamInit>& params,
                   const std::vector<RowTable>& tables, const OptimizerSettings& settings) {
  Graph graph(all_ops(), "update");
  Builder b(graph);
  const Type flat{layout.dtype(), {part.size()}};
  const Value p = part.size() > 0 ? graph.add_input("params", flat, Role::kParam) : Value{};
  const Value g = part.size() > 0 ? graph.add_input("grads", flat, Role::kGrad) : Value{};
  const Value scale = b.input("scale", {DType::kF32, {}});
  const Value lr = b.input("lr", {DType::kF32, {}});
  const Value step = b.input("step", {DType::kI64, {}});
  if (part.size() > 0) emit_optimizer(graph, p, g, scale, lr, step, layout, part, params, settings);
  for (const RowTable& table : tables) {
    const std::vector<Value> state = add_table_inputs(graph, table);
    const Value ids = graph.add_input(grad_ids_name(table.name), {DType::kI32, {table.ids}}, Role::kGrad);
    const Value rows = add_gradient_rows(graph, table);
    const auto updated =
        b.op_all("adamw_rows", {state[0], state[1], state[2], state[3], ids, rows, scale, lr, step},
                 adamw_attributes(settings, init_of(params, table.name).decay));
    for (size_t k = 0; k < state.size(); ++k) graph.add_update(state[k], updated[k]);
  }
  return graph;
}

Graph build_catch_up(const std::vector<ParamInit>& params, const std::vector<RowTable>& tables,
                     const OptimizerSettings& settings, bool all) {
  Graph graph(all_ops(), all ? "catch_up_all" : "catch_up");
  Builder b(graph);
  const Value history = b.input("lr_history", {DType::kF32, {kLrHistory}});
  const Value step = b.input("step", {DType::kI64, {}});
  for (const RowTable& table : tables) {
    const std::vector<Value> state = add_table_inputs(graph, table);
    Value ids = all ? b.constant(0.0, {DType::kI32, {0}}) : graph.find(table.ids_input);
    if (!ids.valid()) ids = b.input(table.ids_input, {DType::kI32, {table.ids}});
    Attributes attributes = adamw_attributes(settings, init_of(params, table.name).decay);
    attributes.set("all", all);
    const auto rows =
        b.op_all("adamw_catch_up", {state[0], state[1], state[2], state[3], ids, history, step}, attributes);
    for (size_t k = 0; k < state.size(); ++k) graph.add_update(state[k], rows[k]);
  }
  return graph;
}

}  // namespace lockstep
