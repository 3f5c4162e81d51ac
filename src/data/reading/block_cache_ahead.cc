// The part of BlockCache that loads blocks before they are asked for.
#include <utility>

#include "data/reading/block_cache.h"

namespace lockstep {
namespace {

// Left free for blocks that are asked for: a share of the limit, and what some loads take.
constexpr int64_t kFreeShare = 32;
constexpr int64_t kFreeLoads = 2;
// A block that nobody used while so many records were used for each block there is will not be: an order goes
// through the blocks that it mixes again and again. Reading that began in the middle of an epoch leaves such.
// Of few large blocks, threads each take many records at once, so that it is as many times the records of
// one.
constexpr int64_t kForgotten = 8;

}  // namespace

void BlockCache::will_need(std::span<const Need> blocks) {
  const std::lock_guard lock(mutex_);
  if (options_.keep_all) return;
  for (const Need& block : blocks) {
    const auto found = entries_.find(block.key);
    // One that was asked for before anything was said of it is there for the epoch that is said first. A need
    // that waited its turn would come when the block is used up, and have it loaded for nobody.
    if (found != entries_.end() && found->second.epoch == kUnknown) found->second.epoch = block.epoch;
    if (found == entries_.end() || found->second.epoch != block.epoch) add_need(++turns_, block);
  }
}

void BlockCache::add_need(int64_t turn, const Need& need) {
  if (needed_.emplace(need.key, turn).second) needs_.emplace(turn, need);
}

int64_t BlockCache::forget_need(int64_t key) {
  const auto found = needed_.find(key);
  if (found == needed_.end()) return kUnknown;
  const auto need = needs_.find(found->second);
  const int64_t epoch = need->second.epoch;
  needs_.erase(need);
  needed_.erase(found);
  return epoch;
}

void BlockCache::forget_needs() {
  needs_.clear();
  needed_.clear();
}

bool BlockCache::has_room_ahead() {
  if (options_.keep_all) return false;
  const std::lock_guard lock(mutex_);
  return needs_.empty() && make_room_ahead();
}

bool BlockCache::load_ahead(const Load& load) {
  if (options_.keep_all) return false;
  std::unique_lock lock(mutex_);
  if (needs_.empty() || !make_room_ahead()) return false;
  const auto [turn, need] = *needs_.begin();
  forget_need(need.key);
  if (const auto found = entries_.find(need.key); found != entries_.end()) {
    keep_for(need, turn, need.key, found->second);
    return true;
  }
  if (!options_.memory->try_take(options_.loading)) {
    add_need(turn, need);
    return false;
  }
  Entry& entry = begin_load(need.key);
  entry.ahead = true;
  entry.epoch = need.epoch;
  entry.turn = turn;
  lock.unlock();
  std::unique_ptr<RowBlock> loaded;
  try {
    loaded = load(need.key);
  } catch (...) {
    lock.lock();
    fail_load(need.key);
    return true;
  }
  lock.lock();
  end_load(need.key, entry, std::move(loaded));
  return true;
}

// A block that is there is kept for another epoch too.
void BlockCache::keep_for(const Need& need, int64_t turn, int64_t key, Entry& entry) {
  if (entry.epoch == need.epoch || entry.next_turn != 0) return;
  entry.epoch = need.epoch;
  if (!entry.block) return;
  if (!entry.ahead && entry.readers == 0 && seems_forgotten(entry)) {
    entry.due = entry.block->records();
    set_ahead(key, entry, turn);
    return;
  }
  entry.due += entry.block->records();
  entry.next_turn = turn;
}

bool BlockCache::seems_forgotten(const Entry& entry) const {
  return uses_ - entry.last_use >
         kForgotten * std::max<int64_t>(std::ssize(entries_) - std::ssize(ahead_), entry.block->records());
}

bool BlockCache::make_room_ahead() {
  const ByteBudget& memory = *options_.memory;
  const int64_t wanted = memory.limit() / kFreeShare + (kFreeLoads + 1) * options_.loading;
  const auto fits = [&] { return memory.used() + wanted <= memory.limit(); };
  while (!fits()) {
    const auto oldest = oldest_unread();
    if (oldest == entries_.end() || oldest->second.next_turn != 0 || !seems_forgotten(oldest->second))
      return false;
    drop(oldest->first);
  }
  return true;
}

}  // namespace lockstep
