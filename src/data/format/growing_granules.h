// GrowingGranules: the granules of a shard whose records are met one by one, without knowing in advance how
// many or how long they are. Granules of one record are joined in pairs, again and again, until they are
// about as long as granule_for wants them: a function of the records' offsets alone.
//
// Long stretches of bytes that are left out become granules of their own, without records, so that nobody
// reads a damaged gigabyte to get at the records beside it; so do short ones that would mislead a decoder.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "data/format/shard_index.h"

namespace lockstep {

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
