// ShardSet: the shards of a data set, opened and indexed, from which any range of records can be decoded by
// any thread.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "data/format/format.h"
#include "data/index/index_progress.h"
#include "data/index/manifest.h"
#include "data/pipeline/stage_counters.h"

namespace lockstep {

struct ShardSetOptions {
  std::string index_folder = {};  // empty: beside the data
  int threads = 1;                // to build indexes with
  double most_bad = 0;  // share of the records that may be left out, where the format skips bad ones
  IndexProgress progress = {};
};

// What one thread reads and decodes into, used again from block to block.
class BlockScratch {
 public:
  ColumnBlock block;

 private:
  friend class ShardSet;
  std::vector<std::unique_ptr<std::string>> buffers_;
};

class ShardSet {
 public:
  // Throws UserError for a shard that cannot be read, and for more bad records than are allowed.
  ShardSet(std::unique_ptr<Format> format, std::vector<std::unique_ptr<ByteSource>> shards,
           const ShardSetOptions& options = {});
  // Of files, sorted by path.
  ShardSet(std::unique_ptr<Format> format, const std::vector<std::string>& files,
           const ShardSetOptions& options = {});

  const Format& format() const { return *format_; }
  const Manifest& manifest() const { return *manifest_; }
  const std::vector<BlockField>& fields() const { return fields_; }
  const ShardIndex& index(size_t shard) const { return indexes_[shard]; }
  // Records that were left out: "tx.csv at byte 512: 3 fields ...".
  std::vector<std::string> bad_records() const;

  // Records [first, first + count) into scratch.block.
  void load(int64_t first, int64_t count, BlockScratch& scratch, StageCounters& counters) const;
  // Says that they will soon be loaded.
  void expect(int64_t first, int64_t count) const;
  std::string describe(int64_t record) const;
  // Of contents and everything that decides what records decode to.
  std::string fingerprint() const;

 private:
  void index_shards(const ShardSetOptions& options);
  void check_bad(const ShardSetOptions& options) const;
  // Calls part(shard, first, count) for the parts of the range that lie together in a shard.
  template <typename Part>
  void for_each_shard(int64_t first, int64_t count, const Part& part) const;

  std::unique_ptr<Format> format_;
  std::vector<std::unique_ptr<ByteSource>> bytes_;
  std::vector<ShardIndex> indexes_;
  std::vector<std::unique_ptr<ShardDecoder>> decoders_;
  std::unique_ptr<Manifest> manifest_;
  std::vector<BlockField> fields_;
};

}  // namespace lockstep
