// The same model with some of its parameters frozen: they keep the type that their values are stored in, and
// have no gradient, no optimizer state and no part in any reduction.
//
//   graph f(x: f32[4,2], w: f32[2,3] @param) { y = matmul(x, w) ... }
// with w frozen in bf16 becomes
//   graph f(x: f32[4,2], w: bf16[2,3] @frozen) { w32 = cast(w) {dtype=f32}  y = matmul(x, w32) ... }
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "model/model.h"

namespace lockstep {

// The type that a parameter is kept in where it is frozen; nothing: it is trained.
using FrozenType = std::function<std::optional<DType>(const std::string& name)>;

Model with_frozen(const Model& model, const FrozenType& frozen);

// The model of a rewritten graph: all else is the old one's. `starts` are how the graph's parameters begin,
// in any order and more than enough.
Model with_graph(const Model& model, Graph graph, const std::vector<ParamInit>& starts);

}  // namespace lockstep
