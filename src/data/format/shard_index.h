// ShardIndex: where the records of one shard lie. Built once by the shard's format, then kept in a sidecar
// file (data/shards/sidecar.h).
//
// Records are found by granules: runs of `granule` consecutive records of which the first byte is known, a
// few kB each, so that an index is a small part of its shard and a block of any size and place can be read
// with little waste. Formats whose granules are given (row groups, pages) say in `firsts` where each begins.
// A granule without records is a stretch that is left out.
#pragma once
#include <algorithm>
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

// GrowingGranules: the granules of a shard whose records are met one by one, without knowing in advance how
// many or how long they are. Granules of one record are joined in pairs, again and again, until they are
// about as long as granule_for wants them: a function of the records' offsets alone.
//
// Long stretches of bytes that are left out become granules of their own, without records, so that nobody
// reads a damaged gigabyte to get at the records beside it; so do short ones that would mislead a decoder.
class GrowingGranules {
 public:
  // The next record begins here.
  void add(int64_t offset) {
    close_gap(offset);
    if (records_++ % granule_ != 0) return;
    offsets_.push_back(static_cast<uint64_t>(offset));
    const int64_t bytes = offset - static_cast<int64_t>(offsets_[0]);
    const auto count = static_cast<int64_t>(offsets_.size()) - 1;
    if (count >= kFewest && granule_for(bytes, count) > 1) join();
  }
  // Here begins something that is left out, up to the next record. `apart`: a decoder must not see it.
  void leave_out(int64_t offset, bool apart = false) {
    if (gap_begin_ < 0) gap_begin_ = offset;
    gap_apart_ = gap_apart_ || apart;
  }
  int64_t records() const { return records_; }

  // All records have been added; the last ends at or before `end`.
  ShardIndex finish(int64_t end) {
    close_gap(end);
    offsets_.push_back(static_cast<uint64_t>(end));
    if (gaps_.empty()) return {.records = records_, .granule = granule_, .offsets = std::move(offsets_)};
    return with_gaps();
  }

 private:
  static constexpr int64_t kFewest = 256;       // to judge the length by
  static constexpr int64_t kLongGap = 1 << 16;  // bytes that are worth a granule

  struct Gap {
    int64_t record = 0;  // the one behind it
    int64_t begin = 0, end = 0;
  };

  void close_gap(int64_t end) {
    // What lies before the first record belongs to no granule anyway.
    if (gap_begin_ >= 0 && records_ > 0 && (gap_apart_ || end - gap_begin_ > kLongGap))
      gaps_.push_back({records_, gap_begin_, end});
    gap_begin_ = -1;
    gap_apart_ = false;
  }

  ShardIndex with_gaps() const {
    ShardIndex index{.records = records_, .granule = 0};
    const auto add = [&](int64_t first, int64_t offset) {
      if (!index.firsts.empty() && index.firsts.back() == first &&
          index.offsets.back() == static_cast<uint64_t>(offset))
        return;
      index.firsts.push_back(first);
      index.offsets.push_back(static_cast<uint64_t>(offset));
    };
    auto gap = gaps_.begin();
    for (size_t i = 0; i < offsets_.size(); ++i) {
      const int64_t first = std::min(static_cast<int64_t>(i) * granule_, records_);
      for (; gap != gaps_.end() && gap->record <= first; ++gap) {
        add(gap->record, gap->begin);
        add(gap->record, gap->end);
      }
      add(first, static_cast<int64_t>(offsets_[i]));
    }
    return index;
  }

  // Only even counts are joined in full; an odd one leaves the last, which has only just begun.
  void join() {
    size_t kept = 0;
    for (size_t i = 0; i < offsets_.size(); i += 2) offsets_[kept++] = offsets_[i];
    offsets_.resize(kept);
    granule_ *= 2;
  }

  int64_t records_ = 0;
  int64_t granule_ = 1;
  std::vector<uint64_t> offsets_;
  int64_t gap_begin_ = -1;
  bool gap_apart_ = false;
  std::vector<Gap> gaps_;
};

}  // namespace lockstep
