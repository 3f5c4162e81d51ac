// A table whose roles and constants were settled before, by the training records of a run: new files are read
// as those were, and nothing is fitted to them.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "data/table/table.h"

namespace lockstep {

// The transforms of Table::constants(), with the options that the table had. The columns are looked for in
// the first of `files`, whose label need not be there. Throws UserError for a column that is not, and for
// constants of other transforms. All records count alike. There is no source; open_table(options, kept,
// files) gives one.
Table restore_table(const TableOptions& options, std::string_view constants,
                    const std::vector<std::string>& files);

// The same transforms for records whose label is not known.
Transforms without_label(const Table& table, const std::string& label);

}  // namespace lockstep
