// The index of a shard from its sidecar file, or built and then kept there.
//
// Sidecars lie in the folder .lockstep-index beside the data, or in one that is named. A sidecar is valid for
// one format with one set of options, and for the file as it was: its size, times of change and inode, and a
// sample of its content. Any of these may differ although the content does not: the index is then built again
// and is the same. Several processes that start together build an index once: the first one locks it. Where
// the folder cannot be written, the index is built at every start, and the log says so.
#pragma once
#include <functional>
#include <string>
#include <string_view>

#include "data/format/format.h"

namespace lockstep {

// Builds the index and hashes the content, in one pass where the format reads the shard in order.
ShardIndex build_index(const Format& format, const ByteSource& shard, const Format::Progress& progress);

// `built` says whether the shard had to be read.
struct IndexResult {
  ShardIndex index;
  bool built = false;
};
IndexResult index_of_file(const Format& format, const ByteSource& shard, const IndexFolder& folder,
                          const Format::Progress& progress);

// Where something of a shard is kept, under a name that ends in `key` and `ending`. All that is kept of this
// shard in the folder begins with kept_stem.
std::string kept_path(const std::string& shard, const IndexFolder& folder, std::string_view key,
                      std::string_view ending);
std::string kept_stem(const std::string& shard, const IndexFolder& folder);
// Where the sidecar of a shard lies.
std::string sidecar_path(const Format& format, const std::string& shard, const IndexFolder& folder);

}  // namespace lockstep
