// MappedSource: records that lie in plain files just as they are kept (format/compact_rows.h), such as
// windows of tokens. The files are mapped into memory, and a record goes from there straight into its row of
// a batch: no block is copied, and what is held besides batches is the system's cache of files.
//
// A file that is cut, changed or cannot be read is an error that names it, as for a FileSource; fingerprint,
// blocks and records are those of a FileSource over the same shards.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "data/reading/row_block.h"
#include "data/shards/shard_set.h"
#include "data/source/source.h"

namespace lockstep {

class MappedSource : public Source {
 public:
  // The shards must be mappable.
  MappedSource(std::shared_ptr<const ShardSet> shards, std::vector<Column> columns, int64_t budget);

  // Whether the records of the shards are kept as they lie, in files that can be mapped.
  static bool is_mappable(const ShardSet& shards);

  int64_t size() const override { return shards_->records(); }
  std::vector<Column> columns() const override { return columns_; }
  void fill(std::span<const int64_t> records, Batch& batch) const override;
  std::string fingerprint() const override { return fingerprint_; }
  std::string describe(int64_t record) const override { return shards_->describe(record); }
  const ShardSet* files() const override { return shards_.get(); }
  int64_t block_records() const override { return block_; }
  const StageCounters* stages() const override { return &counters_; }

 private:
  struct Row;
  struct Reading;

  // Finds the rows in memory.
  void locate(std::span<const int64_t> records, std::vector<Row>& rows) const;
  // Fills the batch's row from a record that is read and decoded like any other; raises what is wrong with
  // it.
  void fill_decoded(const Row& row, std::span<std::byte* const> columns) const;
  void check_files(const std::vector<Row>& rows) const;

  std::shared_ptr<const ShardSet> shards_;
  std::vector<Column> columns_;
  RowLayout layout_;
  const CompactRows* compact_;
  int64_t block_;
  std::string fingerprint_;
  mutable StageCounters counters_;
};

// Over these shards, of whose columns nothing is to be transformed: a MappedSource where it can be, or else a
// FileSource.
std::shared_ptr<const Source> open_rows(std::shared_ptr<const ShardSet> shards, std::vector<Column> columns,
                                        int64_t budget);

}  // namespace lockstep
