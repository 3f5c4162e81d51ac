// The parameters of a unit, of which every worker owns a piece, as ops (passes/gather_params.h):
//
//   flat = gather_unit_start {unit, numel, dtype}   begins to bring all of them into one buffer
//   whole = gather_unit_done(flat) {unit}           from here on they may be waited for
//   w = unit_part(whole) {param, offset, shape, dtype}   one of them, waited for: a view further on
//
// No operand says what is gathered: whoever runs the graph knows the unit's pieces (runtime/unit_source.h).
#pragma once
#include "graph/op_def.h"

namespace lockstep {

// The parameters of a rank lie along this axis of the mesh.
inline constexpr std::string_view kUnitGroup = "data";

// Whether it is the start or the done.
bool gathers_unit(const Node& node);
bool is_unit_part(const Node& node);
// The start that a part comes from.
int32_t unit_start_of(const Graph& graph, const Node& part);
// Of a view: the bytes between where its operand begins and where it does.
int64_t view_offset(const Graph& graph, const Node& node);

}  // namespace lockstep
