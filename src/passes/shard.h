// shard: splits a graph over the ranks along one axis of a mesh. Every value is replicated (R), split along
// one of its axes (S0, S1, ...) or partial (P: the sum over the ranks is meant); collectives convert between
// these, and shapes become those of one rank.
//
//   graph f(x: f32[4,8], w: f32[8,16] @param, v: f32[16,2] @param) {     with w split along axis 1
//     h = matmul(x, w)  a = gelu(h)  y = matmul(a, v)  loss = sum(y)     and v along axis 0, on 2 ranks
//     return loss
//   }
// becomes
//   graph f(x: f32[4,8], w: f32[8,8] @param, v: f32[8,2] @param) {
//     h = matmul(x, w)   a = gelu(h)                                     h: R,S1->S1, a: S1->S1
//     y = matmul(a, v)   loss = sum(y)                                   y: S1,S0->P, loss: P->P
//     loss_all_reduce = all_reduce(loss) {group="tensor", size=2}
//     return loss_all_reduce
//   }
// It runs on the differentiated graph, so that gradients need no rules of their own: the placements of
// backward's values follow from those of what it reads, and a partial value can never stand where a whole one
// is meant. Inputs lie as the options say, by default replicated; @grad inputs as their parameters. Plain
// outputs are replicated on return, updates lie as their target.
//
// Nodes are taken in program order. Of an op's legal signatures (OpDef::sharding) the one is chosen for which
// the fewest bytes are sent to convert its operands, each counted from the nearest form in which it exists by
// then; of equals the one that cuts fewer bytes out of replicated values, then the first. A partial sum that
// is left split counts as if it were also gathered again, since somebody will want all of it: so sums inside
// a transformer's residual stream are all-reduced, as in Megatron-LM, not scattered. An op without a rule has
// replicated operands.
//
// Where a replicated value is cut into parts, the graphs of the ranks differ in the offsets of these slices
// and in nothing else.
#pragma once
#include <map>
#include <string>

#include "graph/graph.h"
#include "graph/sharding.h"
#include "passes/pipeline.h"

namespace lockstep {

// Throws UserError where a placement cannot be had: no such input or axis, an extent that the ranks cannot
// share evenly.
Graph shard(const Graph& graph, const ShardAxis& axis, const PassOptions& options = {});

// Over all axes of the options, one after another.
Graph run_shard(const Graph& graph, const PassOptions& options);

}  // namespace lockstep
