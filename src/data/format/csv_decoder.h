// Records of a CSV shard as columns. Column by column: fields of one column are alike, and a loop over them
// is what the processor foresees best.
#pragma once
#include <memory>
#include <vector>

#include "data/format/csv_check.h"
#include "data/format/format.h"

namespace lockstep {

std::unique_ptr<ShardDecoder> make_csv_decoder(const ByteSource& shard, const ShardIndex& index,
                                               const CsvHeader& header, std::vector<CsvWanted> wanted,
                                               char separator);

}  // namespace lockstep
