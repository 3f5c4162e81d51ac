// For tests of formats: a text in memory as a shard, and its records.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "data/format/format.h"
#include "data/shards/formats.h"
#include "data/shards/shard_set.h"

namespace lockstep {

inline ShardSet shard_of(std::string_view format, const std::string& name, const std::string& text,
                         const FormatOptions& options, double most_bad = 0) {
  std::vector<std::unique_ptr<ByteSource>> shards;
  shards.push_back(open_text(name, text));
  return ShardSet(make_format(format, options), std::move(shards), {.most_bad = most_bad});
}

// Views of the block live until the next call.
inline const ColumnBlock& records_of(const ShardSet& set, int64_t first, int64_t count) {
  thread_local BlockScratch scratch;
  StageCounters counters;
  set.load(first, count, scratch, counters);
  check_block(scratch.block);
  return scratch.block;
}

// What is said when all records of the text are read; empty: nothing.
inline std::string error_of_shard(std::string_view format, const std::string& name, const std::string& text,
                                  const FormatOptions& options) {
  try {
    const ShardSet set = shard_of(format, name, text, options);
    records_of(set, 0, set.manifest().records());
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

}  // namespace lockstep
