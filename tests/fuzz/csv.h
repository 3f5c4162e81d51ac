// What must hold of any bytes that are given as a CSV table.
#pragma once
#include <string_view>

namespace lockstep::testing {

// Reads the text as a table with the label column `label`, and the roles of the others inferred, its
// delimiter recognised and named, with the usual and with other texts for missing values. A table that is
// opened has been looked through: it must be read without an error, give finite inputs in range, and the same
// records when it is read again with the fitted encoding. Returns whether it was a table. Throws for anything
// but a UserError: that is a bug.
bool check_csv_table(std::string_view text);

}  // namespace lockstep::testing
