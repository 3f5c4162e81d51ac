// Tables in files, of any format with named columns, as sources for a tabular model: roles are resolved on a
// sample of the first shard, constants fitted on the training records, and both are then used for every other
// shard. Nothing is held in memory but the blocks in use.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/order/record_set.h"
#include "data/reading/file_source.h"
#include "data/select/table_selection.h"
#include "data/table/table_report.h"
#include "data/transform/model_inputs.h"
#include "data/transform/table_encoding.h"
#include "data/transform/transform.h"

namespace lockstep {

// A text column as the input of an encoder, in place of a table's roles.
using TextRole = EncodeTextOptions;

struct TableOptions {
  std::string format = "csv";
  EncodingOptions encoding;                          // roles, and the share to hold out of the fit
  std::vector<TransformOptions> transforms = {};     // before the table is encoded
  std::map<std::string, std::string> settings = {};  // of the format
  BadRecords bad = BadRecords::kStop;
  double most_bad = 0;
  std::shared_ptr<const MissingTexts> missing = {};  // null: the usual ones
  // All records are decoded and encoded once before any is used, to find those that cannot be; kept beside
  // the indexes.
  bool looks_through = false;
  std::string filter = {};  // data/select/filter.h; empty: all records
  std::optional<TableSplit> split = {};
  std::optional<TableSubsample> subsample = {};  // of the records that are trained on
  std::optional<TextRole> text = {};             // instead of the roles
  bool in_parts = false;  // files come in the order of the patterns that name them, not of their paths
  uint64_t seed = 0;      // of random transforms
  IndexFolder index_folder = {};
  int threads = 1;  // to index and to fit with
  int64_t budget = int64_t{512} << 20;
  int64_t eval_budget = int64_t{64} << 20;  // of what is held out here
  IndexProgress progress = {};
};

struct Table {
  std::shared_ptr<const FileSource> source;         // to train on
  std::shared_ptr<const EncodeTable> encoding;      // null for text
  std::vector<Column> columns;                      // of the model
  Transforms transforms;                            // the encoding is the last
  std::shared_ptr<const FileSource> held_out = {};  // where records are selected and some of them held out
  std::vector<int64_t> parts = {};                  // records of each pattern, where asked for
  TableReport report = {};                          // of what was fitted to

  // The transforms with what was fitted, as text: stored with a run.
  std::string constants() const;
};

// Fits to the shards, less what the options hold out. A fit is kept beside the indexes.
Table open_table(const TableOptions& options, const std::vector<std::string>& files);
// Other shards of the same table.
Table open_table(const TableOptions& options, const Table& fitted, const std::vector<std::string>& files);

// The same for shards that are not files; nothing is kept.
using Shards = std::vector<std::unique_ptr<ByteSource>>;
Table open_table(const TableOptions& options, const std::function<Shards()>& open);
Table open_table(const TableOptions& options, const Table& fitted, const std::function<Shards()>& open);

}  // namespace lockstep
