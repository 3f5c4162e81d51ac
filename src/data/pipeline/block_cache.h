// BlockCache: blocks that were loaded and are not used up, under a hard limit of bytes that also counts the
// blocks on their way.
//
// Each block is loaded by one thread while others that want it wait. Under the limit, a block is let go when
// all its records have been used, unless there is room for the whole data set: then a second epoch loads
// nothing. At the limit, used-up blocks go first, then those not used for the longest time; what was let go
// too early is loaded again.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "data/pipeline/row_block.h"

namespace lockstep {

struct BlockCacheOptions {
  int64_t limit = int64_t{1} << 28;
  int64_t loading = 0;    // what loading one block takes at most, itself included
  bool keep_all = false;  // there is room for all blocks
};

class BlockCache {
 public:
  using Load = std::function<std::unique_ptr<RowBlock>()>;

  explicit BlockCache(const BlockCacheOptions& options) : options_(options) {}

  // The block of this key, of which the caller will use that many records. `load` runs without the lock; what
  // it throws goes to the caller, and to nobody else: others try themselves.
  std::shared_ptr<const RowBlock> get(int64_t key, int64_t uses, const Load& load);

  int64_t peak_bytes() const;

 private:
  struct Entry {
    std::shared_ptr<const RowBlock> block;  // null while it is loaded
    int64_t used = 0;
    std::list<int64_t>::iterator recent;
  };

  std::shared_ptr<const RowBlock> use(Entry& entry, int64_t key, int64_t uses);
  // Makes room for a block to be loaded; false: only once others have finished.
  bool make_room();
  void drop(int64_t key);

  BlockCacheOptions options_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::unordered_map<int64_t, Entry> entries_;
  std::list<int64_t> recent_;  // keys of loaded blocks, the last used first
  int64_t bytes_ = 0;          // of loaded blocks
  int64_t loads_ = 0;          // on their way
  int64_t peak_ = 0;
};

}  // namespace lockstep
