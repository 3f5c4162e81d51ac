// GrowingGranules: the granules of a shard whose records are met one by one, without knowing in advance how
// many or how long they are. Granules of one record are joined in pairs, again and again, until they are
// about as long as granule_for wants them: a function of the records' offsets alone.
#pragma once
#include <cstdint>
#include <vector>

#include "data/format/shard_index.h"

namespace lockstep {

class GrowingGranules {
 public:
  // The next record begins here.
  void add(int64_t offset) {
    if (records_++ % granule_ != 0) return;
    offsets_.push_back(static_cast<uint64_t>(offset));
    const int64_t bytes = offset - static_cast<int64_t>(offsets_[0]);
    const auto count = static_cast<int64_t>(offsets_.size()) - 1;
    if (count >= kFewest && granule_for(bytes, count) > 1) join();
  }
  int64_t records() const { return records_; }

  // All records have been added; the last ends at or before `end`.
  ShardIndex finish(int64_t end) {
    offsets_.push_back(static_cast<uint64_t>(end));
    return {.records = records_, .granule = granule_, .offsets = std::move(offsets_)};
  }

 private:
  static constexpr int64_t kFewest = 256;  // to judge the length by

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
};

}  // namespace lockstep
