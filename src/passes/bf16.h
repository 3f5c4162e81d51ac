// bf16: computes in bf16 what is worth it; parameters, losses and statistics stay in f32.
//
//   graph f(x: f32[8,4], w: f32[4,2] @param, b: f32[2] @param) {
//     y = matmul(x, w)  c = broadcast(b) {shape=[8,2]}  z = add(y, c)  ...
// becomes
//     x16 = cast(x) {dtype=bf16}  w16 = cast(w) {dtype=bf16}  y = matmul(x16, w16)
//     c = broadcast(b) {shape=[8,2]}  c16 = cast(c) {dtype=bf16}  z = add(y, c16)  ...
// Products, convolutions and attention take bf16 operands (and sum in f32 inside); parameters that are stored
// in bf16, and tables whose rows are looked up, are taken as they are; pointwise ops follow their operands;
// norms read and write bf16 with f32 statistics; a loss gets its predictions in f32 where its op cannot take
// bf16. Gradients reach the parameters through the casts, so that grad.* are f32 sums. Runs before autodiff.
//
// With stochastic rounding, parameters are not cast to the nearest bf16 but
//     w16 = round_stochastic(w, rounding) {key=...}
// up or down at random, keyed by the parameter's name; also before they are reshaped, transposed or
// broadcast. An update smaller than half a bf16's last place then moves what the model computes with, on
// average.
#pragma once
#include <string_view>

#include "graph/graph.h"

namespace lockstep {

// The graph input i64[2], (seed, position), that stochastic rounding adds. All microbatches of a step must be
// given the same position, so that they see the same weights.
inline constexpr std::string_view kRoundingInput = "rounding";

Graph compute_in_bf16(const Graph& graph, bool stochastic_rounding = false);

}  // namespace lockstep
