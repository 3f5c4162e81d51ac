// The units in which parameters come to an evaluation whose worker does not have them as a whole: pieces of
// them are owned by others, lie in other stages of a pipeline or in leaves (docs/splitting.md).
//
// They follow from the evaluation graph alone: parameters of a block of the model together, in the order in
// which it reads them, whatever they are stored in.
#pragma once
#include <functional>
#include <string_view>
#include <vector>

#include "passes/pipeline.h"

namespace lockstep {

// None where all are whole. `bucket_bytes`: the least that a unit has, as of gradients (Buckets).
std::vector<ParamUnit> evaluation_units(const Graph& evaluation,
                                        const std::function<bool(std::string_view param)>& is_whole,
                                        int64_t bucket_bytes);

}  // namespace lockstep
