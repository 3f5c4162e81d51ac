// FileSource: records in files as a Source, without ever holding all of them: shards, transforms, and a cache
// of the blocks that are in use.
//
// Record i, and with it every batch, is a pure function of the files, the options and i: threads, budget and
// what was read before decide only how long it takes.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "data/pipeline/block_cache.h"
#include "data/pipeline/shard_set.h"
#include "data/pipeline/shared_tasks.h"
#include "data/select/record_weights.h"
#include "data/source.h"
#include "data/transform/transform.h"

namespace lockstep {

class RowWriter;

struct FileSourceOptions {
  std::vector<Column> columns;          // what the last transform makes for the model
  int64_t budget = int64_t{512} << 20;  // bytes of blocks in memory, and of batches made of them
  uint64_t seed = 0;                    // of random transforms
  int64_t block = 0;                    // of the order, in records; 0: what the shards say
  int64_t lanes = 1;  // of the order, whose blocks are used here at the same time (order/order.h)
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
  int64_t looks_ahead() const override { return cache_->looks_ahead(); }
  void expect(std::span<const int64_t> records, std::span<const int64_t> epochs, bool hint) const override;
  int64_t loads_ahead() const override;
  bool load_ahead() const override;
  void expect_nothing() const override;
  std::string fingerprint() const override { return fingerprint_; }
  std::string describe(int64_t record) const override { return shards_->describe(record); }
  const ShardSet* files() const override { return shards_.get(); }
  int64_t block_records() const override { return order_block_; }
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
  void for_each_block(std::span<BlockCache::Wanted> records, const Visit& visit,
                      bool backwards = false) const;
  // Copies records of a block, or of several that share what is unpacked for them, without loading these.
  void copy_apart(std::span<BlockCache::Wanted> records, const RowWriter& writer) const;
  // Whether records of one block and those of a later one, which follow them in a list, need the same pages
  // and dictionaries.
  bool share_unpacking(std::span<const BlockCache::Wanted> some,
                       std::span<const BlockCache::Wanted> next) const;
  // Copies records of blocks that should not be loaded for them, together with other threads that do the
  // same; gives the other records.
  std::span<BlockCache::Wanted> read_apart(std::span<BlockCache::Wanted> records,
                                           const RowWriter& writer) const;
  // Gives the nanoseconds that went into loading.
  int64_t load_missing(std::span<BlockCache::Wanted> records, const RowWriter& writer) const;
  int64_t kept_row_bytes() const { return compact_ != nullptr ? compact_->row_bytes() : layout_.row_bytes(); }
  // What loading so many consecutive records takes at most.
  int64_t bytes_while_loading(int64_t records, size_t most_fields) const;
  std::unique_ptr<RowBlock> load(int64_t key, std::span<const uint32_t> only) const;
  RowBlock rows_of(int64_t epoch, int64_t first, int64_t count, std::span<const uint32_t> only) const;
  // Nothing where values have to be looked at one by one.
  std::optional<RowBlock> encoded_rows(int64_t first, int64_t count, std::span<const uint32_t> only) const;
  // Tells the cache of blocks that it was not told of lately.
  void tell_blocks(std::span<const BlockCache::Wanted> records, std::span<const int64_t> epochs) const;
  // Whether reading these records of a block by themselves takes a small part of what the block takes.
  bool is_little(int64_t key, std::span<const uint32_t> in_block) const;

  std::shared_ptr<const ShardSet> shards_;
  std::vector<std::shared_ptr<const Transform>> transforms_;
  FileSourceOptions options_;
  RowLayout layout_;
  const CompactRows* compact_ = nullptr;   // how blocks are kept; null: in rows of the layout
  const RowEncoding* encoding_ = nullptr;  // where rows are decoded as such; null: by columns
  int64_t order_block_;
  int64_t block_;   // what is loaded at once: a block of the order, or a run of them
  int block_bits_;  // of its records
  int64_t blocks_;  // of all records
  bool varies_;
  int64_t record_bytes_ = 0;  // what a record takes at most while it is loaded, beside its fetched bytes
  std::string fingerprint_;
  std::shared_ptr<BigMemory> rows_memory_ = BigMemory::make();
  mutable StageCounters counters_;
  mutable std::unique_ptr<BlockCache> cache_;
  mutable std::mutex told_mutex_;
  mutable std::vector<BlockCache::Need> told_;  // what the cache was told last, by hash of the key
  mutable std::atomic<uint64_t> turn_ = 0;
  mutable std::mutex apart_mutex_;  // held while it is decided what is read apart
  mutable SharedTasks apart_;
  mutable std::mutex hinted_mutex_;
  mutable std::unordered_set<int64_t> hinted_;  // blocks whose bytes were asked for, not loaded yet
};

}  // namespace lockstep
