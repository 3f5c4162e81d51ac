// BlockCache: blocks that were loaded and are not used up, under a hard limit of bytes that also counts the
// blocks on their way and those that somebody still reads.
//
// Each block is loaded by one thread while others that want it wait. Under the limit, a block is let go when
// all its records have been used, unless there is room for the whole data set: then a second epoch loads
// nothing, and finding a block takes no lock. At the limit those not used for the longest time go, but none
// that is being read; what was let go too early is loaded again. A caller that holds a block must give it
// back before it asks for another one: then somebody can always go on.
#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "data/pipeline/row_block.h"

namespace lockstep {

struct BlockCacheOptions {
  int64_t limit = int64_t{1} << 28;
  int64_t loading = 0;   // what loading one block takes at most, itself included
  int64_t keep_all = 0;  // there is room for all blocks, which are that many; 0: there is not
};

class BlockCache {
  struct Entry {
    std::unique_ptr<const RowBlock> block;  // null while it is loaded
    int64_t used = 0;
    int64_t readers = 0;
    std::list<int64_t>::iterator recent;
  };

 public:
  using Load = std::function<std::unique_ptr<RowBlock>()>;

  // A block that stays while this lives.
  class Use {
   public:
    Use(const RowBlock* block, BlockCache* cache, int64_t key, Entry* entry, int64_t waited)
        : block_(block), cache_(cache), key_(key), entry_(entry), waited_(waited) {}
    ~Use() {
      if (entry_ != nullptr) cache_->give_back(key_, *entry_);
    }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    const RowBlock* operator->() const { return block_; }
    // Nanoseconds that went into loading it, by this thread or by another that it waited for.
    int64_t waited() const { return waited_; }

   private:
    const RowBlock* block_;
    BlockCache* cache_;
    int64_t key_;
    Entry* entry_;  // null: it stays anyway
    int64_t waited_;
  };

  explicit BlockCache(const BlockCacheOptions& options)
      : options_(options), kept_(static_cast<size_t>(options.keep_all)) {}

  // The block of this key, of which the caller will use that many records. `load` runs without the lock; what
  // it throws goes to the caller, and to nobody else: others try themselves.
  Use get(int64_t key, int64_t uses, const Load& load);

  int64_t limit() const { return options_.limit; }
  int64_t peak_bytes() const;

 private:
  Use use(int64_t key, Entry& entry, int64_t uses, int64_t waited);
  void give_back(int64_t key, Entry& entry);
  // Makes room for a block to be loaded; false: only once others have finished.
  bool make_room();
  void drop(int64_t key);

  BlockCacheOptions options_;
  std::vector<std::atomic<const RowBlock*>> kept_;  // by key, where all are kept
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::unordered_map<int64_t, Entry> entries_;
  std::list<int64_t> recent_;  // keys of loaded blocks, the last used first
  int64_t bytes_ = 0;          // of loaded blocks
  int64_t loads_ = 0;          // on their way
  int64_t waiting_ = 0;
  int64_t peak_ = 0;
};

}  // namespace lockstep
