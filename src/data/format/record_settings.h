// What formats of records one after the other have in common: how long a record may be, and columns that are
// named once.
#pragma once
#include <string_view>
#include <vector>

#include "data/format/format.h"

namespace lockstep {

// The setting longest_record, or 16 MiB. Throws UserError for any other setting.
int64_t longest_record(std::string_view format, const FormatOptions& options);

// A column that is wanted twice (as a number and as a category) is decoded once, as it is wanted first.
std::vector<BlockField> without_repeats(const std::vector<BlockField>& columns);

}  // namespace lockstep
