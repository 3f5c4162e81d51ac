// The values of one record as lines of text: the columns as they lie in the files, what transforms make of
// them, and the model's inputs.
#pragma once
#include <string>
#include <vector>

#include "data/source/source.h"
#include "data/transform/transform.h"

namespace lockstep {

// "amount = 12.5". Long columns are cut and say how many values they have. The record is one of the source;
// without files there are no lines.
std::vector<std::string> column_lines(const Source& source, int64_t record);
// The same for what all transforms but the last, which encodes, make of them.
std::vector<std::string> made_lines(const Source& source, const Transforms& transforms, BlockPlace place);
// The same for the inputs, as they are in an epoch.
std::vector<std::string> input_lines(const Source& source, int64_t record, int64_t epoch);

}  // namespace lockstep
