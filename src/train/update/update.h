// The graphs that run once per step, after all microbatches: norm and clipping, then the optimizer over flat
// buffers.
#pragma once
#include "graph/graph.h"
#include "model/model.h"
#include "passes/row_gradients.h"
#include "runtime/flat.h"
#include "train/update/optimizer.h"

namespace lockstep {

// What the optimizer keeps beside a table with row gradients; names of graph inputs.
std::string moment1_name(std::string_view param);
std::string moment2_name(std::string_view param);
std::string last_step_name(std::string_view param);  // per row: the step it was last brought up to

// The learning rates of the latest steps, indexed by step modulo this, for rows that are caught up late.
inline constexpr int64_t kLrHistory = 1024;

// Inputs: grads @grad (of the layout's type, [N]), for each table its gradient rows, count i64[]. The
// gradients are sums. Outputs: the norm of the gradient divided by count, and the scale that the update
// multiplies gradients with: clipping over count.
Graph build_norm(const FlatLayout& layout, const std::vector<RowTable>& tables,
                 const OptimizerSettings& settings);

// The same where workers own pieces of the gradients: first each makes the parts of the norm that its own
// give, then the parts of all, `squares` in the order of the layout, stand for the gradients. Inputs of the
// first: piece_name(i) @grad of every piece that is not empty; its output are their parts.
std::string piece_name(size_t piece);
Graph build_square_sums(DType dtype, const std::vector<Slice>& pieces);
Graph build_norm_of_squares(const FlatLayout& layout, const std::vector<RowTable>& tables,
                            const OptimizerSettings& settings);

// Inputs: of a part of the elements, unless it is empty, params @param, grads @grad and the optimizer's
// state; scale f32[], lr f32[], step i64[]; of parameters in bf16 kUpdateRounding i64[2]; for each table its
// parameter, moments, last steps, gradient ids and rows.
Graph build_update(const FlatLayout& layout, Slice part, const std::vector<ParamInit>& params,
                   const std::vector<RowTable>& tables, const OptimizerSettings& settings);

// Brings rows of the tables to the state they have after step - 1: those that the ids inputs name, or with
// `all` every row. Runs before forward reads them, and before anybody looks at the weights.
Graph build_catch_up(const std::vector<ParamInit>& params, const std::vector<RowTable>& tables,
                     const OptimizerSettings& settings, bool all);

}  // namespace lockstep
