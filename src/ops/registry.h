// All ops. Adding one: write src/ops/<op>.cc with a function that returns its OpDef, and name it in
// registry.cc.
#pragma once
#include "graph/op_def.h"

namespace lockstep {

const OpSet& all_ops();

}  // namespace lockstep
