// ShardSet: the shards of a data set, opened and indexed, from which any range of records can be decoded by
// any thread; or some of their records, numbered through as if there were no others.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/format/format.h"
#include "data/order/record_set.h"
#include "data/shards/stage_counters.h"

namespace lockstep {

// DataManifest: the shards of a data set in the order of their paths, and how their records are numbered:
// those of the first shard from 0 on, then those of the next. A few numbers per shard, none per record.
struct DataShard {
  std::string name;
  int64_t bytes = 0;
  int64_t records = 0;
  std::string content;  // a hash of its bytes
};

class DataManifest {
 public:
  // Throws UserError if there is no shard, or no record in any of them.
  explicit DataManifest(std::vector<DataShard> shards);

  const std::vector<DataShard>& shards() const { return shards_; }
  int64_t records() const { return firsts_.back(); }
  int64_t bytes() const { return bytes_; }

  struct Place {
    size_t shard = 0;
    int64_t record = 0;  // in the shard
  };
  Place locate(int64_t record) const;
  int64_t first_of(size_t shard) const { return firsts_[shard]; }

  // Records that are read at once: a power of two, about 64 kB of a shard. A function of the manifest, and
  // part of the order.
  int64_t block_records() const;
  // Of contents and counts, whatever the files are called.
  std::string fingerprint() const;

 private:
  std::vector<DataShard> shards_;
  std::vector<int64_t> firsts_;  // of each shard, and the number of all records
  int64_t bytes_ = 0;
};

// Told how far the indexing of a data set is.

// The bytes looked at and the bytes in all; called from many threads.
using IndexProgress = std::function<void(int64_t done, int64_t all)>;

struct ShardSetOptions {
  IndexFolder index_folder = {};
  int threads = 1;      // to build indexes with
  double most_bad = 0;  // share of the records that may be left out, where the format skips bad ones
  IndexProgress progress = {};
  // Whose index is used, where another format's columns decide what a bad record is; null: that of the set.
  const Format* indexed_by = nullptr;
  bool check_columns = false;  // whether a column that no shard seems to have is an error, or missing
};

// What one thread reads and decodes into, used again from block to block.
class BlockScratch {
 public:
  ColumnBlock block;

 private:
  friend class ShardSet;
  FetchBuffers buffers_;
};

class ShardSet {
 public:
  // Throws UserError for a shard that cannot be read, and for more bad records than are allowed.
  ShardSet(std::unique_ptr<Format> format, std::vector<std::unique_ptr<ByteSource>> shards,
           const ShardSetOptions& options = {});
  // Of files, sorted by path.
  ShardSet(std::unique_ptr<Format> format, const std::vector<std::string>& files,
           const ShardSetOptions& options = {});

  // Only these of the records, of a set that has all of them. They share everything else; `definition` says
  // which records they are, for the fingerprint.
  ShardSet select(std::shared_ptr<const RecordSet> only, std::string definition) const;

  int64_t records() const { return only_ ? only_->size() : manifest().records(); }
  // The number that a record has among all of the shards.
  int64_t original(int64_t record) const { return only_ ? (*only_)[record] : record; }
  // Which of all records these are; null: all.
  const RecordSet* selected() const { return only_.get(); }
  // How many records come before what is number `original` among all of the shards.
  int64_t records_before(int64_t original) const { return only_ ? only_->before(original) : original; }
  // Records that are read at once, a power of two: what the manifest says, or as many as the format unpacks
  // at once, where that is more; and how many of these blocks a lane of the order mixes, so that what is held
  // is the same. Both are part of the order.
  int64_t block_records() const;
  int64_t order_window() const;
  // What loading so many records may have to fetch, about.
  int64_t bytes_of(int64_t count) const;

  const Format& format() const { return *opened_->format; }
  const DataManifest& manifest() const { return *opened_->manifest; }  // of all records
  const std::vector<BlockField>& fields() const { return opened_->fields; }
  const ShardIndex& index(size_t shard) const { return opened_->indexes[shard]; }
  const ShardDecoder& decoder(size_t shard) const { return *opened_->decoders[shard]; }
  // Records that were left out: "tx.csv at byte 512: 3 fields ...".
  std::vector<std::string> bad_records() const;
  // How many they are: some damage takes several with it.
  int64_t bad_count() const;

  // Records [first, first + count) into scratch.block.
  void load(int64_t first, int64_t count, BlockScratch& scratch, StageCounters& counters) const;
  // How records may be loaded instead; null: only as columns.
  const CompactRows* compact_rows() const { return only_ ? nullptr : format().compact_rows(); }
  void load_compact(int64_t first, int64_t count, std::byte* rows, BlockScratch& scratch,
                    StageCounters& counters) const;
  std::string describe(int64_t record) const;
  // Of contents and everything that decides what records decode to.
  std::string fingerprint() const;

 private:
  struct Opened {
    std::unique_ptr<Format> format;
    std::vector<std::unique_ptr<ByteSource>> bytes;
    std::vector<ShardIndex> indexes;
    std::vector<std::unique_ptr<ShardDecoder>> decoders;
    std::unique_ptr<DataManifest> manifest;
    std::vector<BlockField> fields;
  };
  // Consecutive records of the shards.
  struct Range {
    int64_t first, count;
  };
  using Decode = std::function<void(const ShardDecoder& decoder, Fetch& fetch, int64_t first, int64_t count)>;

  ShardSet(std::shared_ptr<const Opened> opened, std::shared_ptr<const RecordSet> only,
           std::string definition)
      : opened_(std::move(opened)), only_(std::move(only)), definition_(std::move(definition)) {}

  static void index_shards(Opened& opened, const ShardSetOptions& options);
  void check_bad(const ShardSetOptions& options) const;
  // The ranges that hold some records of the set, and with `marks` which of theirs these are.
  std::vector<Range> ranges_of(int64_t first, int64_t count, std::vector<uint8_t>& marks) const;
  // Fetches the ranges and has them decoded; gives how many records these are.
  int64_t load_ranges(const std::vector<Range>& ranges, BlockScratch& scratch, StageCounters& counters,
                      const Decode& decode) const;
  // Calls part(shard, first, count) for the parts of the range that lie together in a shard.
  template <typename Part>
  void for_each_shard(const Range& range, const Part& part) const;

  std::shared_ptr<const Opened> opened_;
  std::shared_ptr<const RecordSet> only_;  // null: all
  std::string definition_;
};

// Says in the log how many records were left out, where some were, and which was the first.
void warn_of_bad_records(const ShardSet& shards);

}  // namespace lockstep
