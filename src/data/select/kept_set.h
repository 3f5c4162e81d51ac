// Sets of records by what a test says of their columns: found in one parallel pass over those columns alone,
// then kept beside the indexes as one bit a record, so that a second start reads nothing.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "data/select/filter.h"
#include "data/shards/shard_set.h"

namespace lockstep {

struct RecordTest {
  std::string text;                 // all that it depends on: the kept bits are found by it
  std::vector<BlockField> columns;  // to decode
  // One byte for each record of a block; throws BadValue.
  std::function<std::vector<uint8_t>(const ColumnBlock& block)> marks;
};

// With `lenient`, a text that is no number counts as missing where it is compared with one.
RecordTest filter_test(const Filter& filter, bool lenient);

struct KeptSetOptions {
  std::string folder = {};  // where bits are kept; empty: nowhere
  bool writes = true;       // false: those that are kept are used, and none are added
  std::string index = {};   // what the index depends on: which records are bad and have no number
  int threads = 1;
  IndexProgress progress = {};
};

// `shards` have the columns of the test, and all records. Throws UserError that names the record with a value
// that the test cannot use.
RecordSet marked_records(const ShardSet& shards, const RecordTest& test, int threads,
                         const IndexProgress& progress = {});

// The same from the file in which it is kept, if it is. `open` gives the columns of the test, and is called
// only where records must be read; `all` has the same records.
using OpenColumns = std::function<std::shared_ptr<const ShardSet>(const std::vector<BlockField>& columns)>;
std::shared_ptr<const RecordSet> kept_set(const ShardSet& all, const RecordTest& test,
                                          const OpenColumns& open, const KeptSetOptions& options);

}  // namespace lockstep
