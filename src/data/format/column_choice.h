// Which columns of a file that knows their names and types a job wants.
#pragma once
#include <string>
#include <vector>

#include "data/format/column_block.h"

namespace lockstep {

// The places in `held` of the wanted columns, in the order they are wanted; all, where none is named. A
// column keeps the type it has in the file. Throws UserError for one that is not there, or holds text where
// numbers are wanted.
std::vector<size_t> choose_columns(const std::vector<BlockField>& held, const std::vector<BlockField>& wanted,
                                   const std::string& file);

}  // namespace lockstep
