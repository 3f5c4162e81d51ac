// What must hold of any bytes that are given as a CSV table.
#pragma once
#include <string_view>

namespace lockstep::testing {

// Reads the text as a table with the label column `label`, and the roles of the others inferred. A table that
// is read must give finite inputs in range, and the same records when it is read again with the fitted
// encoding. Returns whether it was a table. Throws for anything but a UserError: that is a bug.
bool check_csv_table(std::string_view text);

}  // namespace lockstep::testing
