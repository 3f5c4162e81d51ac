// BlockCache: blocks that were loaded and are not used up, under a hard limit of bytes that also counts the
// blocks on their way, those that somebody still reads, and what other stages take from the same budget.
//
// Each block is loaded by one thread while others that want it wait. A block is let go when all its records
// have been used, unless there is room for the whole data set: then a second epoch loads nothing. At the
// limit those not used for the longest time go, but none that is being read.
//
// Where there is memory that nobody needs, blocks are loaded before they are asked for (load_ahead), in the
// order in which they will be: an epoch begins with all its windows at once, and what that takes is spread
// over the time before it. Such a block never takes the room of one that is needed sooner: it gives way to
// everything that is asked for, the one that is needed last first, and comes again when there is room.
//
// Memory that does not hold what the order mixes makes reading slow, since blocks come back again and again;
// jobs are refused then (FileSource::memory_for).
//
// A caller that holds a block must give it back before it asks for another one: then somebody can always go
// on.
#pragma once
#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/byte_budget.h"
#include "data/reading/row_block.h"

namespace lockstep {

struct BlockCacheOptions {
  std::shared_ptr<ByteBudget> memory = std::make_shared<ByteBudget>(int64_t{1} << 28);
  int64_t loading = 0;    // what loading one block takes at most, itself included
  bool keep_all = false;  // there is room for all blocks
};

class BlockCache {
  static constexpr int64_t kUnknown = -1;

  struct Entry {
    std::unique_ptr<const RowBlock> block;  // null while it is loaded
    int64_t due = 0;                        // uses of its records until it can go
    int readers = 0;
    int64_t last_use = 0;      // how many uses of blocks there had been then
    bool ahead = false;        // nobody has asked for it yet: it stands in ahead_
    bool awaited = false;      // by threads that sleep until it is loaded
    int64_t epoch = kUnknown;  // the last one that it is wanted for, as far as that was said
    int64_t turn = 0;          // in the order of what will be wanted
    int64_t next_turn = 0;     // that of the epoch after this one, where it stays for that; 0: it does not
  };

 public:
  using Load = std::function<std::unique_ptr<RowBlock>(int64_t key)>;

  // A block that stays while this lives.
  class Use {
   public:
    Use(BlockCache& cache, int64_t key, Entry& entry, int64_t waited)
        : cache_(cache), key_(key), entry_(entry), waited_(waited) {}
    ~Use() { cache_.give_back(key_, entry_); }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    const RowBlock* operator->() const { return entry_.block.get(); }
    // Nanoseconds that went into loading it, by this thread or by another that it waited for.
    int64_t waited() const { return waited_; }

   private:
    BlockCache& cache_;
    int64_t key_;
    Entry& entry_;
    int64_t waited_;
  };

  // A record that is wanted, and its row once it was found.
  struct Wanted {
    int64_t key;      // of its block
    uint32_t record;  // in the block
    uint32_t place;   // the caller's
    const std::byte* row = nullptr;
  };

  // Blocks whose rows were found; they stay while this lives.
  class Found {
   public:
    explicit Found(BlockCache& cache) : cache_(cache) {}
    ~Found() { cache_.give_back(*this); }
    Found(const Found&) = delete;
    Found& operator=(const Found&) = delete;

   private:
    friend class BlockCache;
    BlockCache& cache_;
    std::vector<std::pair<int64_t, Entry*>> used_;  // with their keys
  };

  explicit BlockCache(const BlockCacheOptions& options);
  ~BlockCache();
  BlockCache(const BlockCache&) = delete;
  BlockCache& operator=(const BlockCache&) = delete;

  // The block of this key with these records, each of which the caller will use once. `load` runs without the
  // lock; what it throws goes to the caller, and to nobody else: others try themselves.
  Use get(int64_t key, std::span<const uint32_t> records, const Load& load);

  // Finds the rows of those records whose blocks are there, under one lock for all of them. They count as
  // used, and stay until `found` goes.
  void find(std::span<Wanted> records, Found& found);

  struct Need {
    int64_t key;
    int64_t epoch;
  };
  // These blocks will be asked for, in this order and after all that was said before; one that is needed in
  // several epochs is said for each.
  void will_need(std::span<const Need> blocks);
  // Whether it should be told of more: all that it was told of is there, and there is room.
  bool has_room_ahead();
  // Loads the first of them that is not there; false: there is none, or no room. What `load` throws is
  // dropped: whoever asks for the block will meet it.
  bool load_ahead(const Load& load);

  // What was expected is not, and reading begins anew.
  void expect_nothing();
  bool holds(int64_t key) const;
  // Whether a thread is at it.
  bool is_loading(int64_t key) const;

 private:
  Use use(int64_t key, Entry& entry, std::span<const uint32_t> records, int64_t waited);
  void give_back(int64_t key, Entry& entry);
  void give_back(Found& found);
  // After somebody has finished with a block; gives it where it was let go.
  std::unique_ptr<const RowBlock> end_use(int64_t key, Entry& entry);
  // Makes room for a block to be loaded, and takes it; false: only once others have finished.
  bool make_room();
  // Lets blocks go until others can take so many bytes; false: there are none that can go.
  bool let_go(int64_t bytes);
  // Makes room for a block to be loaded ahead, by letting go what nobody will ask for.
  bool make_room_ahead();
  bool seems_forgotten(const Entry& entry) const;
  std::unordered_map<int64_t, Entry>::iterator oldest_unread();
  void add_need(int64_t turn, const Need& need);
  int64_t forget_need(int64_t key);  // somebody asked for it; gives the epoch
  void forget_needs();
  void keep_for(const Need& need, int64_t turn, int64_t key, Entry& entry);
  void touch(Entry& entry);
  void set_ahead(int64_t key, Entry& entry, int64_t turn);
  Entry& begin_load(int64_t key);  // in memory that was taken for it
  void end_load(int64_t key, Entry& entry, std::unique_ptr<RowBlock> loaded);
  void fail_load(int64_t key);
  // Gives what it held.
  std::unique_ptr<const RowBlock> drop(int64_t key);
  void take(int64_t bytes);

  BlockCacheOptions options_;
  mutable std::mutex mutex_;
  // Who waits for a block that another loads, and who waits for memory: apart, so that nobody is woken for
  // nothing, which takes as long as a block does.
  std::condition_variable loaded_, room_;
  std::unordered_map<int64_t, Entry> entries_;
  std::map<int64_t, int64_t> ahead_;             // keys of blocks that were loaded ahead, by their turn
  std::map<int64_t, Need> needs_;                // blocks to load ahead, by their turn
  std::unordered_map<int64_t, int64_t> needed_;  // their turns, by key
  int64_t turns_ = 0;
  int64_t uses_ = 0;
  int64_t bytes_ = 0;      // of loaded blocks, and of those on their way
  int64_t want_room_ = 0;  // threads
};

}  // namespace lockstep
