// What the collectives share. A collective comes whole (all_reduce) until the pass split_collectives turns it
// into a start and a done, so that other work can run between the two.
//
// `group` names the workers that take part and `size` says how many they are: types follow from it. All of
// them run the same collectives of a group in the same order. The result of a start has the collective's
// type, but holds it only after its done: nobody else may read it. A done also reads what its start read,
// which therefore keeps its memory until the transfer is over.
#pragma once
#include "graph/op_def.h"

namespace lockstep {

// A collective without its infer and gradient. `more` are its own attributes, after group and size. The names
// of the start and the done live as long as the program.
OpDef make_collective(std::string_view name, std::string_view start, std::string_view done,
                      std::string_view summary, std::vector<AttributeDef> more = {});
OpDef make_start(const OpDef& whole);
OpDef make_done(const OpDef& whole);

// The checked number of workers.
int64_t group_size(const InferContext& context);
// A worker's number within the group, from an attribute.
void require_worker(const InferContext& context, std::string_view attribute);
void require_summable(const InferContext& context);
// Attributes of the same group.
Attributes same_group(const Attributes& attributes);

// The type of a token: what a send hands on, no bytes, only an order.
Type token_type();

}  // namespace lockstep
