// The values of one record as lines of text: the columns as they lie in the files, and the model's inputs
// that become of them.
#pragma once
#include <string>
#include <vector>

#include "data/source.h"

namespace lockstep {

// "amount = 12.5". Long columns are cut and say how many values they have. The record is one of the source;
// without files there are no lines.
std::vector<std::string> column_lines(const Source& source, int64_t record);
// The same for the inputs, as they are in an epoch.
std::vector<std::string> input_lines(const Source& source, int64_t record, int64_t epoch);

}  // namespace lockstep
