// recompute: runs parts of the forward computation again during backward, so that their results need not be
// kept.
//
//   graph f(x: f32[64,64], w: f32[64,64] @param, grad.w: f32[64,64] @grad) {
//     h = matmul(x, w)  a = mul(h, h)  y = matmul(a, w)  loss = sum(y)  ... backward reads h and a ...
//   }
// becomes, under policy cheap,
//     h = matmul(x, w)  a = mul(h, h)  y = matmul(a, w)  loss = sum(y)  ... again.a = mul(h, h) ...
// Policies:
//   none   keeps everything that backward reads.
//   fused  runs again what its readers compute on the way: pointwise results that only pointwise ops of
//          backward read, from operands that such ops read anyway. Less is written, kept and read; no kernel
//          is added.
//   cheap  runs again what is bound by memory (trait recompute_cheap) and whose own operands are kept anyway:
//   it adds
//          nothing to what is kept, and goes at most a few ops deep.
//   block  keeps only values marked by `checkpoint` and runs everything between two marks again. What comes
//   after the
//          last mark is kept: backward begins there, so running it again would free nothing.
// The same ops run on the same operands, so that no policy changes a bit. Results made again are named
// "again.<name>", by which later passes know them: cse never merges them back, schedule places them as late
// as possible. Runs after fuse, so that fused ops are run again whole. No checkpoint mark is left afterwards.
#pragma once
#include "graph/graph.h"
#include "passes/pipeline.h"

namespace lockstep {

Graph recompute(const Graph& graph, const PassOptions& options);

// Whether a node holds nothing but results of this pass.
bool is_recomputed(const Graph& graph, const Node& node);

}  // namespace lockstep
