// Sharding of ops that treat every row of a tensor alike and share some whole operands between rows.
#pragma once
#include <string_view>
#include <vector>

#include "graph/sharding.h"

namespace lockstep {

// Everything replicated, or all rows split together along one of the leading `axes`. One letter per operand
// and result says its part: 'r' has the rows, 'w' is whole, 'p' is a sum over rows, partial when they are
// split.
std::vector<ShardingSignature> shard_rows(int axes, std::string_view inputs, std::string_view outputs);

}  // namespace lockstep
