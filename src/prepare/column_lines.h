// What is said of a table's columns before the first step, by train in a line and by check in a few.
#pragma once
#include <string>
#include <vector>

#include "data/table/table_report.h"

namespace lockstep {

// "12 numeric, 4 categorical, label is_fraud; left out: card (named under columns.ignore)".
std::string column_line(const TableReport& report);
// A line for every column that is left out, with the reason, and for every one with missing values.
std::vector<std::string> column_notes(const TableReport& report);

}  // namespace lockstep
