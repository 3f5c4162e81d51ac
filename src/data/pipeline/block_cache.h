// BlockCache: blocks that were loaded and are not used up, under a hard limit of bytes that also counts the
// blocks on their way, those that somebody still reads, and what other stages take from the same budget.
//
// Each block is loaded by one thread while others that want it wait. A block is let go when all its records
// have been used, unless there is room for the whole data set: then a second epoch loads nothing, and finding
// a block takes no lock. At the limit those not used for the longest time go, but none that is being read.
//
// Where blocks that were let go too early come back again and again, memory does not hold what the order
// mixes. From then on a block is loaded for the records of it that are expected next, and only these are
// kept: as many as memory holds, so that a block is loaded as rarely as possible.
//
// Where there is memory that nobody needs, blocks are loaded before they are asked for (load_ahead), in the
// order in which they will be: an epoch begins with all its windows at once, and what that takes is spread
// over the time before it. Blocks of which half is used then make do with half of their memory. Such a block
// never takes the room of one that is needed sooner: it gives way to everything that is asked for, the one
// that is needed last first, and comes again when there is room. Where memory does not hold what the order
// mixes, this is done for what is asked for soon, with the memory that an epoch's last records leave.
//
// When reading begins, or goes on somewhere else, somebody waits for a batch whose records lie in as many
// blocks. A block of which something is asked for the first time then is not loaded: its records are read by
// themselves (read_apart). That is done for as many blocks as an order has open, so an epoch costs a few more
// granules, and not one more block.
//
// A caller that holds a block must give it back before it asks for another one: then somebody can always go
// on.
#pragma once
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/byte_budget.h"
#include "data/pipeline/row_block.h"

namespace lockstep {

struct BlockCacheOptions {
  std::shared_ptr<ByteBudget> memory = std::make_shared<ByteBudget>(int64_t{1} << 28);
  int64_t loading = 0;         // what loading one block takes at most, itself included
  int64_t keep_all = 0;        // there is room for all blocks, which are that many; 0: there is not
  int64_t row_bytes = 1;       // of a record that is kept
  int64_t others = INT64_MAX;  // what others have beyond this they give back when blocks need it
  int apart = 1;               // how often records of a block may be read without it when reading begins
};

class BlockCache {
  static constexpr int64_t kUnknown = -1;

  struct Entry {
    // What every use looks at comes first.
    std::unique_ptr<const RowBlock> block;  // null while it is loaded
    int32_t due = 0;                        // uses of its records until it can go
    int32_t readers = 0;
    int64_t moved = 0;  // how many uses of blocks there had been when it came to the front of recent_
    std::vector<uint64_t> used;  // a bit for each of its records, where memory is short; or none
    bool ahead = false;          // nobody has asked for it yet: it stands in ahead_, not in recent_
    bool listed = false;         // in half_used_
    bool awaited = false;        // by threads that sleep until it is loaded
    int64_t epoch = kUnknown;    // the last one that it is wanted for, as far as that was said
    int64_t turn = 0;            // in the order of what will be wanted
    int64_t next_turn = 0;       // that of the epoch after this one, where it stays for that; 0: it does not
    std::list<int64_t>::iterator recent;
  };

 public:
  // Makes the block, of the given records or of all where there are none.
  using Load = std::function<std::unique_ptr<RowBlock>(std::span<const uint32_t> only)>;

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

  // Whether records of a block should be read without it. They then count as used. `is_little`, asked without
  // the lock and once for a block, says whether they are a small part of it.
  bool read_apart(int64_t key, std::span<const uint32_t> records, const std::function<bool()>& is_little);
  // False: it says no to all of them.
  bool reads_apart() const { return begins_; }

  struct Need {
    int64_t key;
    int64_t epoch;
    int64_t position = 0;  // where memory is short: how many records were used when it is asked for, about
  };
  // These blocks will be asked for, in this order and after all that was said before; one that is needed in
  // several epochs is said for each.
  void will_need(std::span<const Need> blocks);
  // Whether it should be told of more: all that it was told of is there, and there is room.
  bool has_room_ahead();
  // Loads the first of them that is not there; false: there is none, or no room. What `load` throws is
  // dropped: whoever asks for the block will meet it.
  using LoadAhead = std::function<std::unique_ptr<RowBlock>(int64_t key, std::span<const uint32_t> only)>;
  bool load_ahead(const LoadAhead& load);

  // How many records it wants to be told about ahead of their use; 0: it holds whole blocks.
  int64_t looks_ahead() const;
  // These records of a block will be used.
  void expect(int64_t key, std::span<const uint32_t> records);
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
  void forget_expected(int64_t key, std::span<const uint32_t> records);
  // Makes room for a block to be loaded, and takes it; false: only once others have finished.
  bool make_room();
  // Lets blocks go until others can take so many bytes; false: there are none that can go.
  bool let_go(int64_t bytes);
  void note_used(Entry& entry, std::span<const uint32_t> records);
  // Frees the memory of records that were used, of blocks with many such, until `fits` holds.
  void shrink_until(const std::function<bool()>& fits);
  // Makes room for a block to be loaded ahead, by letting go what nobody will ask for.
  bool make_room_ahead();
  bool seems_forgotten(const Entry& entry) const;
  // Whether the first that is needed is not to be loaded yet.
  bool is_too_early() const;
  // How many records it wants to know of, where memory is short.
  int64_t horizon() const;
  void add_need(int64_t turn, const Need& need);
  int64_t forget_need(int64_t key);  // somebody asked for it; gives the epoch
  void forget_needs();
  void keep_for(const Need& need, int64_t turn, int64_t key, Entry& entry);
  void touch(int64_t key, Entry& entry);
  void set_ahead(int64_t key, Entry& entry, int64_t turn);
  Entry& begin_load(int64_t key);  // in memory that was taken for it
  void end_load(int64_t key, Entry& entry, std::unique_ptr<RowBlock> loaded);
  void fail_load(int64_t key);
  bool used_up(int64_t key, const Entry& entry) const;
  // Gives what it held.
  std::unique_ptr<const RowBlock> drop(int64_t key);
  // The records to load a block with.
  std::vector<uint32_t> wanted(int64_t key, std::span<const uint32_t> records, bool reloaded) const;
  void note_load();
  bool load_together() const;
  void note_loaded_again(int64_t key);
  // Less what they would give back.
  int64_t used_by_others() const { return std::min(options_.memory->used() - bytes_, options_.others); }
  void take(int64_t bytes);

  BlockCacheOptions options_;
  std::vector<std::atomic<const RowBlock*>> kept_;  // by key, where all are kept
  mutable std::mutex mutex_;
  // Who waits for a block that another loads, and who waits for memory: apart, so that nobody is woken for
  // nothing, which takes as long as a block does.
  std::condition_variable loaded_, room_;
  std::unordered_map<int64_t, Entry> entries_;
  std::map<int64_t, int64_t> ahead_;             // keys of blocks that were loaded ahead, by their turn
  std::map<int64_t, Need> needs_;                // blocks to load ahead, by their turn
  std::unordered_map<int64_t, int64_t> needed_;  // their turns, by key
  std::vector<int64_t> half_used_;               // keys of blocks that can do with half of their memory
  int64_t turns_ = 0;
  int64_t uses_ = 0;
  std::unordered_map<int64_t, std::vector<uint32_t>> expected_;  // and not used yet, by key
  int64_t expected_records_ = 0;                                 // all of these
  std::unordered_map<int64_t, int> dropped_early_;               // how often, by key
  std::list<int64_t> recent_;                                    // keys of loaded blocks, the last used first
  std::atomic<bool> sparse_ = false;                             // blocks hold expected records only
  struct Apart {
    int64_t records = 0;  // that the block does not know of
    int times = 0;
  };
  std::unordered_map<int64_t, Apart> apart_;  // by key, of blocks that were read apart
  std::atomic<bool> begins_ = true;           // a few more blocks may come to be in apart_
  int64_t loads_of_these_ = 0, again_ = 0;    // of some loads, so far; those for at least the third time
  int64_t bytes_ = 0;                         // of loaded blocks, and of those on their way
  int64_t loads_ = 0;                         // on their way
  int64_t most_loads_ = 0;                    // that ever were
  // Loads since then, and in as long a time before.
  int64_t loaded_lately_ = 0, loaded_before_ = 0, lately_since_ = 0;
  int64_t want_room_ = 0;  // threads
};

}  // namespace lockstep
