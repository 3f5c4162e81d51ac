// head_chunks: the product that makes the logits, their cross-entropy and its gradients are computed for one
// part of the rows after another, so that the logits of all rows are never there at once.
//
//   logits = matmul(x, w)                                               x: [N,C], w: [C,V]
//   loss, count, lse = cross_entropy(logits, labels)
//   dlogits = cross_entropy_grad(one, logits, labels, lse)
//   dx = matmul(dlogits, w) {transpose_b=true}   dw = matmul(x, dlogits) {transpose_a=true}
// becomes, in two chunks,
//   x.0 = slice(x) {0..N/2}   logits.0 = matmul(x.0, w)   loss.0 = cross_entropy(logits.0, labels.0) ...
//   dx.0 = matmul(dlogits.0, w)   dw.0 = matmul(x.0, dlogits.0)
//   x.1 = slice(x) {N/2..N}   ...   loss.1, dx.1   dw = matmul(x.1, dlogits.1, dw.0)
//   loss = add(loss.0, loss.1)   dx = concat(dx.0, dx.1)
// What goes through in chunks is found from the logits: whoever reads or writes a value of their shape, up to
// products. Each of these ops must be able to work on rows (OpDef::sharding). Rows are computed as ever; what
// is a sum over rows (the loss, the gradient of w) is added up chunk by chunk, which rounds differently. It
// runs on the differentiated graph, where forward and backward of a chunk stand together; a graph that only
// evaluates goes through in the same chunks.
#pragma once
#include "graph/graph.h"
#include "passes/pipeline.h"

namespace lockstep {

bool has_cross_entropy(const Graph& graph);

// Throws UserError where the loss cannot be computed so: no cross-entropy, or more chunks than rows.
Graph chunk_head(const Graph& graph, int64_t chunks);

}  // namespace lockstep
