// ShardIndex: where the records of one shard lie. Built once by the shard's format, then kept in a sidecar
// file (data/index/sidecar.h).
//
// Records are found by granules: runs of `granule` consecutive records of which the first byte is known, a
// few kB each, so that an index is a small part of its shard and a block of any size and place can be read
// with little waste. Formats whose granules are given (row groups, pages) say in `firsts` where each begins.
// A granule without records is a stretch that is left out.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

// A record that the policy allows to leave out, or several that are damaged together. They have no numbers:
// all others are counted without them.
struct BadRecord {
  int64_t offset = 0;
  std::string reason;
  int64_t records = 1;

  bool operator==(const BadRecord&) const = default;
};

struct ShardIndex {
  int64_t records = 0;
  int64_t granule = 1;                 // records of each, less the last; 0 where `firsts` says
  std::vector<uint64_t> offsets = {};  // of each granule's first byte, and the end of the last
  std::vector<int64_t> firsts = {};  // each granule's first record, and `records`; empty unless granule is 0
  std::vector<BadRecord> bad = {};   // by offset
  std::string extra = {};            // what else the format wants to know of the shard
  std::string content = {};          // a hash of all bytes

  bool operator==(const ShardIndex&) const = default;

  int64_t granules() const { return static_cast<int64_t>(offsets.size()) - 1; }
  int64_t granule_of(int64_t record) const;
  int64_t first_of(int64_t granule_index) const;
  bool is_bad(int64_t offset) const;
};

// The bytes of the granules that hold records [first, first + count), and the number of the first record in
// them.
struct GranuleSpan {
  int64_t offset = 0;
  int64_t bytes = 0;
  int64_t first = 0;
};
GranuleSpan span_of(const ShardIndex& index, int64_t first, int64_t count);
// How many of the records [first, first + count) come before a stretch that is left out, at least one: what
// can be read at once.
int64_t records_together(const ShardIndex& index, int64_t first, int64_t count);

// The granule for records of this many bytes on average: a power of two, about 4 kB.
int64_t granule_for(int64_t bytes, int64_t records);

// As kept in a file. parse_index throws UserError for bytes that are not an index, or damaged.
std::string to_bytes(const ShardIndex& index);
ShardIndex parse_index(std::string_view bytes);

}  // namespace lockstep
