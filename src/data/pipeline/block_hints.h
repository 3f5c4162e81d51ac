// BlockHints: which blocks of records the system was already asked to read ahead, for sources over mapped
// files. A block is asked for when the first of its records is announced, and forgotten with the last: it
// comes again in another epoch.
#pragma once
#include <cstdint>
#include <mutex>
#include <span>
#include <unordered_map>

#include "data/source.h"

namespace lockstep {

class BlockHints {
 public:
  explicit BlockHints(int64_t block) : block_(block) {}

  // Calls ask(first) for the first record of every block that is new.
  template <typename Ask>
  void expect(std::span<const int64_t> records, const Ask& ask) {
    for (const int64_t record : records) {
      if (record == kNoRecord) continue;
      const int64_t block = record / block_;
      {
        const std::lock_guard lock(mutex_);
        const int64_t announced = ++announced_[block];
        if (announced == block_) announced_.erase(block);
        if (announced > 1) continue;
      }
      ask(block * block_);
    }
  }

  void clear() {
    const std::lock_guard lock(mutex_);
    announced_.clear();
  }

 private:
  int64_t block_;
  std::mutex mutex_;
  std::unordered_map<int64_t, int64_t> announced_;  // records of blocks that were asked for
};

}  // namespace lockstep
