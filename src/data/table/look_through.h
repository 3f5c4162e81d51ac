// A look at every record of a table before the first step: all of them are decoded and transformed once, so
// that a value that cannot be used ends the job now and not at the step that meets it; and what the columns
// hold is counted on the way.
#pragma once
#include <string>
#include <vector>

#include "data/bytes/index_folder.h"
#include "data/shards/shard_set.h"
#include "data/table/column_tally.h"
#include "data/transform/transform.h"

namespace lockstep {

struct LookOptions {
  std::string label = {};  // the column that others might decide; empty: none
  uint64_t seed = 0;       // of random transforms
  int threads = 1;
  bool parses = false;  // texts that are numbers count for a range
  IndexProgress progress = {};
};

// The facts of each column of the shards, the same for any number of threads. Fitted transforms. Throws
// UserError that names the first record with a value that cannot be used.
std::vector<ColumnFacts> look_through(const ShardSet& shards, const Transforms& transforms,
                                      const LookOptions& options);

// The same, from the file beside the index in which it is kept once the records have been looked through.
// `fingerprint` stands for all that it depends on beside the options.
std::vector<ColumnFacts> looked_through(const ShardSet& shards, const Transforms& transforms,
                                        const LookOptions& options, const std::string& fingerprint,
                                        const IndexFolder& index_folder);

}  // namespace lockstep
