// Manifest: the shards of a data set in the order of their paths, and how their records are numbered: those
// of the first shard from 0 on, then those of the next. A few numbers per shard, none per record.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace lockstep {

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

// IndexProgress: told how far the indexing of a data set is.

// The bytes looked at and the bytes in all; called from many threads.
using IndexProgress = std::function<void(int64_t done, int64_t all)>;

}  // namespace lockstep
