// FileSource: records in files as a Source, without ever holding all of them: shards, transforms, and a cache
// of the blocks that are in use.
//
// Record i, and with it every batch, is a pure function of the files, the options and i: threads, budget and
// what was read before decide only how long it takes.
#pragma once
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "data/reading/block_cache.h"
#include "data/select/table_selection.h"
#include "data/shards/shard_set.h"
#include "data/source/source.h"
#include "data/transform/transform.h"

namespace lockstep {

class RowWriter;

struct FileSourceOptions {
  std::vector<Column> columns;          // what the last transform makes for the model
  int64_t budget = int64_t{512} << 20;  // bytes of blocks in memory, and of batches made of them
  uint64_t seed = 0;                    // of random transforms
  int64_t block = 0;                    // of the order, in records; 0: what the shards say
  // What records count in the loss, as one more column; null: all the same, and no such column.
  std::shared_ptr<const RecordWeights> weights = {};
  bool table = false;  // rows of a table's columns, which data.cache can keep
};

class FileSource : public Source {
 public:
  // Fitted transforms. Throws UserError if their columns do not follow from those of the shards.
  FileSource(std::shared_ptr<const ShardSet> shards, std::vector<std::shared_ptr<const Transform>> transforms,
             FileSourceOptions options);

  int64_t size() const override { return shards_->records(); }
  std::vector<Column> columns() const override { return options_.columns; }
  void fill(std::span<const int64_t> records, Batch& batch) const override {
    fill_in_epochs(records, {}, batch);
  }
  bool varies() const override { return varies_; }
  void fill_in_epochs(std::span<const int64_t> records, std::span<const int64_t> epochs,
                      Batch& batch) const override;
  int64_t memory_to_mix(int64_t records) const override;
  void expect(std::span<const int64_t> records, std::span<const int64_t> epochs) const override;
  int64_t loads_ahead() const override;
  bool load_ahead() const override;
  void expect_nothing() const override;
  std::string fingerprint() const override { return fingerprint_; }
  std::string describe(int64_t record) const override { return shards_->describe(record); }
  const ShardSet* files() const override { return shards_.get(); }
  int64_t block_records() const override { return block_; }
  bool could_keep_rows() const override { return options_.table && !varies_; }
  const StageCounters* stages() const override { return &counters_; }

  int64_t peak_bytes() const { return counters_.memory()->peak(); }
  const ShardSet& shards() const { return *shards_; }
  const std::vector<std::shared_ptr<const Transform>>& transforms() const { return transforms_; }
  const FileSourceOptions& options() const { return options_; }
  // Some consecutive records, straight from their files: the rows that batches of epoch 0 are made of.
  RowBlock rows(int64_t first, int64_t count) const;
  // What that takes besides, about.
  int64_t bytes_to_load(int64_t count) const { return shards_->bytes_of(count) + count * record_bytes_; }

 private:
  // The records of a batch's rows; valid until this thread asks again.
  std::span<BlockCache::Wanted> wanted(std::span<const int64_t> records,
                                       std::span<const int64_t> epochs) const;
  // Sorts the records by blocks and calls visit(key of the block, its records, their numbers in the block)
  // for every block: each is asked for once, however small the memory is.
  template <typename Visit>
  static void for_each_block(std::span<BlockCache::Wanted> records, const Visit& visit);
  int64_t memory_for(int64_t blocks) const;
  // Gives the nanoseconds that went into loading.
  int64_t load_missing(std::span<BlockCache::Wanted> records, const RowWriter& writer) const;
  int64_t kept_row_bytes() const { return compact_ != nullptr ? compact_->row_bytes() : layout_.row_bytes(); }
  std::unique_ptr<RowBlock> load(int64_t key) const;
  RowBlock rows_of(int64_t epoch, int64_t first, int64_t count) const;
  std::shared_ptr<const ShardSet> shards_;
  std::vector<std::shared_ptr<const Transform>> transforms_;
  FileSourceOptions options_;
  RowLayout layout_;
  const CompactRows* compact_ = nullptr;  // how blocks are kept; null: in rows of the layout
  int64_t block_;                         // records that are loaded at once
  int block_bits_;                        // of its records
  int64_t blocks_;                        // of all records
  bool varies_;
  int64_t loading_ = 0;        // what loading a block takes at most
  bool format_keeps_ = false;  // something between blocks
  int64_t record_bytes_ = 0;   // what a record takes at most while it is loaded, beside its fetched bytes
  std::string fingerprint_;
  std::shared_ptr<BigMemory> rows_memory_ = BigMemory::make();
  mutable StageCounters counters_;
  mutable std::unique_ptr<BlockCache> cache_;
  mutable std::mutex told_mutex_;
  mutable std::vector<BlockCache::Need> told_;  // what the cache was told last, by hash of the key
};

}  // namespace lockstep
