// The text form of a graph: prints and parses exactly. Tests, dumps and bug reports use it.
//
//   graph mlp(x: f32[32,784], w: f32[784,10] @param, y: i32[32]) {
//     z = matmul(x, w)
//     loss, count, lse = cross_entropy(z, y) {ignore=-100}
//     return loss, count
//   }
//
// `return loss, w <- w_new` also writes w_new into the buffer of input w. Attributes at their default are not
// printed. A `#` starts a comment.
#pragma once
#include <string>
#include <string_view>

#include "graph/graph.h"

namespace lockstep {

std::string to_text(const Graph& graph);
std::string to_text(const Graph& graph, const Node& node);
// " {name=value, ...}", or nothing when all are at their default. Every attribute of the op must be present.
std::string attribute_text(const OpDef& op, const Attributes& attributes);

// Throws UserError with "file:line:column: what is wrong".
Graph parse_graph(std::string_view text, const OpSet& ops, std::string_view file = "graph");

}  // namespace lockstep
