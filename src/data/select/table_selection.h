// Which records of a table are trained on, which are evaluated on, and what they count: filter, split by
// entity or share held out, down-sampling, in this order.
//
// Each of them is a function of the record and the options alone. The filter holds for both sides; only the
// records that are trained on are down-sampled.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/order/record_set.h"
#include "data/select/kept_set.h"
#include "data/shards/shard_set.h"
#include "data/transform/table_encoding.h"

namespace lockstep {

// RecordWeights: how much each training record counts in the loss: one of two weights. They are scaled so
// that their mean over the training records is 1, and a learning rate keeps its meaning.

struct RecordWeights {
  std::shared_ptr<const RecordSet> heavy;  // of all records
  float heavy_weight = 1, light_weight = 1;
  std::string text = {};  // for the fingerprint

  float of(int64_t record) const { return heavy->contains(record) ? heavy_weight : light_weight; }
};

// A share of the entities that a column names is held out, with all their records.
struct TableSplit {
  std::string column;
  double eval = 0;
  uint64_t seed = 0;

  std::string text() const;
};

// Of the records that match `where`, a share is kept.
struct TableSubsample {
  std::string where;
  double keep = 1;
  bool reweight = true;  // those kept count 1 / keep times as much
  std::string by = {};   // a column whose values are kept or left out together; empty: record by record
  uint64_t seed = 0;

  std::string text() const;
};

// Records that can be read but not used: their label is none. They are left out, where the share allows it.
struct UsableRecords {
  std::shared_ptr<const RecordSet> set;
  std::string text = {};  // what it depends on, for the fingerprint
  double most_bad = 0;    // share that may be left out, with those that cannot be read
  std::function<std::string(int64_t record)> problem = {};  // what is wrong with one, by file and line
};

struct SelectionOptions {
  std::string filter = {};  // empty: all records
  std::optional<TableSplit> split = {};
  std::optional<TableSubsample> subsample = {};
  double hold_out = 0;  // the last share of the records that match the filter, where there is no split
  std::optional<UsableRecords> usable = {};

  bool any() const { return !filter.empty() || split || subsample || usable; }
  // The columns that it asks for, in the types they are wanted in.
  std::vector<BlockField> columns() const;
};

struct TableSelection {
  std::shared_ptr<const ShardSet> train;
  std::shared_ptr<const ShardSet> eval = {};  // null: nothing is held out
  std::shared_ptr<const RecordWeights> weights = {};
};

// Throws UserError for an expression that cannot be understood, and for a side without records. `open` and
// `kept` are those of data/select/kept_set.h.
TableSelection select_records(const std::shared_ptr<const ShardSet>& all, const SelectionOptions& options,
                              const OpenColumns& open, const KeptSetOptions& kept);

}  // namespace lockstep
