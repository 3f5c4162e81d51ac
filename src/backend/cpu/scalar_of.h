// How each pointwise op is written in tile instructions. The one table between ops and the vector loops.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "backend/cpu/tile_program.h"
#include "graph/op_def.h"

namespace lockstep::cpu {

// Appends the instructions of one pointwise op (one, or a few: gelu_grad, clamp); the last one is its value,
// of dtype. Returns the index of that instruction.
int append_pointwise(std::vector<TileInstruction>& program, const OpDef& op, const Attributes& attributes,
                     std::span<const TileSource> arguments, DType dtype);

// Empty when a tile program computes the pointwise node, otherwise why not: the table does not know the op,
// or f32 arithmetic would round whole numbers.
std::string refuse_as_tile(const Graph& graph, const Node& node);

}  // namespace lockstep::cpu
