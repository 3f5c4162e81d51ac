// Tensor parallelism by leaves: a model is split into G leaves (strategy.tensor_leaves), of which every
// worker of a tensor group has as many.
//
//   graph f(x: f32[4,8], w: f32[8,16] @param, v: f32[16,8] @param) {
//     h = matmul(x, w)  a = gelu(h)  y = matmul(a, v) ...
// in two leaves, on one worker, becomes
//   graph f(x: f32[4,8], w.leaf0: f32[8,8] @param, w.leaf1: f32[8,8] @param, v.leaf0: f32[8,8] @param, ...) {
//     x.leaf0, x.leaf1 = spread(x) {leaves=2}
//     h.leaf0 = matmul(x.leaf0, w.leaf0)  a.leaf0 = gelu(h.leaf0)  y.leaf0 = matmul(a.leaf0, v.leaf0)
//     h.leaf1 = matmul(x.leaf1, w.leaf1)  a.leaf1 = gelu(h.leaf1)  y.leaf1 = matmul(a.leaf1, v.leaf1)
//     y = leaf_sum(y.leaf0, y.leaf1) ...
// and the first of two workers has x.leaf0, h.leaf0, a.leaf0, y.leaf0 and {size=2}. Model/leaf_cuts.h says
// what is split.
//
// Every number of workers runs the same nodes on the same shapes for each leaf, and adds up the same leaves
// by the same tree, backward too (ops/spread.cc): so it trains the same bits. The pieces are parameters of
// their own in the layout, the norm and the update; to the outside they are runs of elements of the
// parameters that the model has without leaves.
#pragma once
#include <map>
#include <string>

#include "model/leaf_cuts.h"
#include "model/model.h"

namespace lockstep {

// Of a worker, in the group of those that share the leaves.
struct TensorShare {
  int64_t leaves = 1;
  int64_t workers = 1;
  int64_t index = 0;

  int64_t own() const { return leaves / workers; }
  int64_t first() const { return index * own(); }
  // A worker's leaves are a subtree of the tree over all of them: 2^n of them, or all.
  static bool is_possible(int64_t leaves, int64_t workers);
};

// A piece of a parameter.
struct LeafPiece {
  std::string param;
  Shape whole;  // shape of the parameter
  LeafCut cut;
  int64_t leaf = 0;
  int64_t leaves = 1;

  std::string name() const { return fmt::format("{}.leaf{}", param, leaf); }
  Shape shape() const { return whole.with(cut.axis, whole[cut.axis] / leaves); }
  // visit(first, at, count): so many elements of the parameter, from `first` on, are the piece's from `at`
  // on.
  template <typename Visit>
  void for_runs(const Visit& visit) const {
    const int64_t outer = whole.product(0, cut.axis), inner = whole.product(cut.axis + 1, whole.rank());
    int64_t at = 0;
    for (int64_t o = 0; o < outer; ++o) {
      int64_t begin = o * whole[cut.axis];
      for (const int64_t segment : cut.segments) {
        const int64_t count = segment / leaves * inner;
        visit(begin * inner + leaf * count, at, count);
        begin += segment;
        at += count;
      }
    }
  }
};

// Pieces by their names.
using LeafPieces = std::map<std::string, LeafPiece>;

struct LeafModel {
  Model model;        // of a worker
  LeafPieces pieces;  // that are its parameters
};

// Throws UserError where the model cannot be split so.
LeafModel split_into_leaves(const Model& model, const TensorShare& share);

}  // namespace lockstep
