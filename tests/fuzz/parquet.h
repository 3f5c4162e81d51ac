// What must hold of any bytes that are given as a Parquet file.
#pragma once
#include <string_view>

namespace lockstep::testing {

// Reads all records of all columns, footer and pages, with small limits on what a page may unpack to. See
// fuzz/columnar.h. Returns whether all of it could be read. Throws for anything but a UserError: that is a
// bug.
bool check_parquet(std::string_view bytes);

}  // namespace lockstep::testing
