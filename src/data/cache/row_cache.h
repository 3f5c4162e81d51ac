// The encoded rows of a FileSource, kept in a file for each of its shards: decoded, transformed and encoded
// once, then mapped by every later run over the same data with the same encoding, and by all workers.
//
// A file is found by what its rows depend on: the shard's content, the format and its options, which records
// are used, the transforms with their constants, the columns. So it is never wrong, only missing. Of several
// processes that start together each writes other shards, and all wait for the last. What was kept of a shard
// as it was before it changed is removed.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "data/cache/row_file.h"
#include "data/reading/file_source.h"
#include "data/shards/shard_set.h"

namespace lockstep {

struct RowCacheOptions {
  std::string folder = {};      // empty: .lockstep-index beside each shard
  int threads = 1;              // to write with
  IndexProgress progress = {};  // while rows are written: bytes of them
  // How much a folder can take; empty: what its file system says.
  std::function<int64_t(const std::string& folder)> free_bytes = {};
};

struct CachedShard {
  int64_t first = 0;  // the number of its first record in the source
  std::unique_ptr<RowFile> rows;
};

// One for each shard that has records in use, written first where they are not there. Throws UserError where
// they cannot be written, with the bytes that are needed, and for a record that cannot be decoded.
std::vector<CachedShard> open_row_cache(const FileSource& source, const RowCacheOptions& options);

// What the rows of each shard are found by, 64 digits: of all that they depend on.
std::vector<std::string> row_cache_keys(const FileSource& source);

}  // namespace lockstep
