// row_gradients: gradients of large embedding tables stay lists of rows.
//
//   return loss, grad.t <- g          where g = embedding_grad(dy, ids) {rows=100000}
// becomes, when the batch touches few of the table's rows,
//   return loss, grad.t.ids <- i, grad.t.rows <- r     where i, r = row_gradient(dy, ids) {rows=100000}
// and grad.t is no longer an input. A dense gradient of a table is almost all zeros: writing it, summing its
// squares and running the optimizer over it costs the whole table every step. The optimizer brings the
// untouched rows up to date when they are next read (adamw_catch_up), bit for bit as if it had visited them
// every step. Only tables whose one use is an embedding of an input's ids qualify: the caller must know which
// rows the next step reads. And only where such tables are at least half of the parameters.
#pragma once
#include <string>
#include <vector>

#include "graph/graph.h"
#include "passes/pipeline.h"

namespace lockstep {

Graph make_row_gradients(const Graph& graph, const PassOptions& options);

// Below this many rows per id of a microbatch the dense gradient is cheap enough, and simpler.
inline constexpr int64_t kRowsPerId = 8;

// A table with row gradients in a graph after the pass.
struct RowTable {
  std::string name;       // of the parameter
  std::string ids_input;  // the graph input that holds the ids
  Shape table;            // [rows, columns]
  int64_t ids = 0;        // how many ids a microbatch has
};
// Which parameters of a freshly differentiated graph qualify, in graph order.
std::vector<RowTable> row_tables(const Graph& differentiated);

std::string grad_ids_name(std::string_view param);
std::string grad_rows_name(std::string_view param);

}  // namespace lockstep
