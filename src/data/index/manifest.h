// Manifest: the shards of a data set in the order of their paths, and how their records are numbered: those
// of the first shard from 0 on, then those of the next. A few numbers per shard, none per record.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace lockstep {

struct ManifestShard {
  std::string name;
  int64_t bytes = 0;
  int64_t records = 0;
  std::string content;  // a hash of its bytes
};

class Manifest {
 public:
  // Throws UserError if there is no shard, or no record in any of them.
  explicit Manifest(std::vector<ManifestShard> shards);

  const std::vector<ManifestShard>& shards() const { return shards_; }
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
  std::vector<ManifestShard> shards_;
  std::vector<int64_t> firsts_;  // of each shard, and the number of all records
  int64_t bytes_ = 0;
};

}  // namespace lockstep
