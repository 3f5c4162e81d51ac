#include "data/reading/block_cache.h"

#include <immintrin.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

namespace lockstep {
namespace {

constexpr int kSpins = 200;
// Such a part of the memory is left to what others take a little of at a time (plans, unpacked pages): where
// all blocks are being read, none can go for them.
constexpr int64_t kMargin = 128;

// Blocks that are remembered while rows are looked for; two in one place cost another look.
constexpr size_t kSeen = 256;
// The lock is held for some microseconds: waiting for it asleep costs more.
std::unique_lock<std::mutex> lock_soon(std::mutex& mutex) {
  std::unique_lock lock(mutex, std::try_to_lock);
  for (int i = 0; i < kSpins && !lock.owns_lock(); ++i) {
    _mm_pause();
    if (i % 8 == 7) (void)lock.try_lock();
  }
  if (!lock.owns_lock()) lock.lock();
  return lock;
}

}  // namespace

BlockCache::BlockCache(const BlockCacheOptions& options) : options_(options) {
  options_.memory->on_shortage([this](int64_t bytes) {
    const std::lock_guard lock(mutex_);
    let_go(bytes);
  });
}

BlockCache::~BlockCache() {
  options_.memory->on_shortage(nullptr);
  options_.memory->give(bytes_);
}

BlockCache::Use BlockCache::get(int64_t key, std::span<const uint32_t> records, const Load& load) {
  std::unique_lock lock = lock_soon(mutex_);
  if (const auto found = entries_.find(key); found != entries_.end() && found->second.block)
    return use(key, found->second, records, 0);
  const auto start = std::chrono::steady_clock::now();
  const auto waited = [&] {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - start)
        .count();
  };
  for (;;) {
    const auto found = entries_.find(key);
    if (found == entries_.end()) {
      if (make_room()) break;
      ++want_room_;
      room_.wait(lock);
      --want_room_;
    } else if (found->second.block) {
      return use(key, found->second, records, waited());
    } else {
      found->second.awaited = true;
      loaded_.wait(lock);
    }
  }
  const int64_t epoch = forget_need(key);
  Entry& entry = begin_load(key);
  entry.epoch = epoch;
  lock.unlock();
  std::unique_ptr<RowBlock> loaded;
  try {
    loaded = load(key);
  } catch (...) {
    lock.lock();
    fail_load(key);
    throw;
  }
  lock.lock();
  end_load(key, entry, std::move(loaded));
  return use(key, entry, records, waited());
}

BlockCache::Entry& BlockCache::begin_load(int64_t key) {
  Entry& entry = entries_[key];
  bytes_ += options_.loading;
  return entry;
}

void BlockCache::end_load(int64_t key, Entry& entry, std::unique_ptr<RowBlock> loaded) {
  take(loaded->bytes() - options_.loading);
  entry.block = std::move(loaded);
  entry.due += entry.block->records();
  entry.last_use = uses_;
  if (entry.ahead) ahead_.emplace(entry.turn, key);
  if (std::exchange(entry.awaited, false)) loaded_.notify_all();
  if (want_room_ > 0) room_.notify_all();
}

void BlockCache::fail_load(int64_t key) {
  take(-options_.loading);
  entries_.erase(key);
  loaded_.notify_all();
  room_.notify_all();
}

void BlockCache::find(std::span<Wanted> records, Found& found) {
  // Records of a batch are of few blocks, again and again: each is looked for once.
  std::array<std::pair<int64_t, Entry*>, kSeen> seen;
  seen.fill({-1, nullptr});
  const std::unique_lock lock = lock_soon(mutex_);
  for (Wanted& wanted : records) {
    auto& [key, entry] = seen[static_cast<size_t>(wanted.key) % kSeen];
    if (key != wanted.key) {
      key = wanted.key;
      const auto there = entries_.find(key);
      entry = there != entries_.end() && there->second.block ? &there->second : nullptr;
      if (entry != nullptr) {
        ++entry->readers;
        found.used_.emplace_back(key, entry);
        touch(*entry);
      }
    }
    if (entry == nullptr) continue;
    wanted.row = entry->block->row(wanted.record);
    ++uses_;
    --entry->due;
  }
}

BlockCache::Use BlockCache::use(int64_t key, Entry& entry, std::span<const uint32_t> records,
                                int64_t waited) {
  uses_ += static_cast<int64_t>(records.size());
  entry.due -= std::ssize(records);
  ++entry.readers;
  touch(entry);
  return {*this, key, entry, waited};
}

void BlockCache::give_back(int64_t key, Entry& entry) {
  std::unique_ptr<const RowBlock> done;  // its memory is given back without the lock
  const std::unique_lock lock = lock_soon(mutex_);
  done = end_use(key, entry);
  if (want_room_ > 0) room_.notify_all();
}

void BlockCache::give_back(Found& found) {
  if (found.used_.empty()) return;
  std::vector<std::unique_ptr<const RowBlock>> done;
  const std::unique_lock lock = lock_soon(mutex_);
  for (const auto& [key, entry] : found.used_)
    if (auto block = end_use(key, *entry)) done.push_back(std::move(block));
  if (want_room_ > 0) room_.notify_all();
}

void BlockCache::touch(Entry& entry) {
  entry.last_use = uses_;
  if (std::exchange(entry.ahead, false)) ahead_.erase(entry.turn);
}

void BlockCache::set_ahead(int64_t key, Entry& entry, int64_t turn) {
  entry.ahead = true;
  entry.turn = turn;
  ahead_.emplace(turn, key);
}

std::unique_ptr<const RowBlock> BlockCache::end_use(int64_t key, Entry& entry) {
  if (--entry.readers > 0) return nullptr;
  // What this epoch had of it is used; the next one is still to come.
  if (entry.next_turn != 0 && !entry.ahead && entry.due <= entry.block->records())
    set_ahead(key, entry, std::exchange(entry.next_turn, 0));
  return entry.due <= 0 && !options_.keep_all ? drop(key) : nullptr;
}

// Where nothing is left to let go and nobody is at work, one block is loaded whatever others have taken.
bool BlockCache::make_room() {
  const int64_t others = options_.keep_all ? 0 : options_.memory->limit() / kMargin;
  while (let_go(options_.loading + others))
    if (options_.memory->try_take(options_.loading)) return true;
  if (!entries_.empty()) return false;
  options_.memory->count(options_.loading);
  return true;
}

bool BlockCache::let_go(int64_t bytes) {
  const ByteBudget& memory = *options_.memory;
  const auto fits = [&] { return memory.used() + bytes <= memory.limit(); };
  for (auto at = ahead_.end(); !fits() && at != ahead_.begin();) {
    const auto [turn, key] = *--at;
    const Entry& entry = entries_.at(key);
    if (entry.readers > 0) continue;
    add_need(turn, {key, entry.epoch});
    ++at;
    drop(key);
  }
  while (!fits()) {
    const auto oldest = oldest_unread();
    if (oldest == entries_.end()) return false;
    drop(oldest->first);
  }
  return true;
}

// Of those that somebody asked for and nobody reads.
std::unordered_map<int64_t, BlockCache::Entry>::iterator BlockCache::oldest_unread() {
  auto oldest = entries_.end();
  for (auto at = entries_.begin(); at != entries_.end(); ++at) {
    const Entry& entry = at->second;
    if (!entry.block || entry.ahead || entry.readers > 0) continue;
    if (oldest == entries_.end() || entry.last_use < oldest->second.last_use) oldest = at;
  }
  return oldest;
}

std::unique_ptr<const RowBlock> BlockCache::drop(int64_t key) {
  const auto found = entries_.find(key);
  take(-found->second.block->bytes());
  if (found->second.ahead) ahead_.erase(found->second.turn);
  std::unique_ptr<const RowBlock> block = std::move(found->second.block);
  entries_.erase(found);
  return block;
}

void BlockCache::take(int64_t bytes) {
  bytes_ += bytes;
  options_.memory->count(bytes);
}

void BlockCache::expect_nothing() {
  const std::lock_guard lock(mutex_);
  forget_needs();
  while (!ahead_.empty()) drop(ahead_.begin()->second);
}

bool BlockCache::is_loading(int64_t key) const {
  const std::unique_lock lock = lock_soon(mutex_);
  const auto found = entries_.find(key);
  return found != entries_.end() && !found->second.block;
}

bool BlockCache::holds(int64_t key) const {
  const std::lock_guard lock(mutex_);
  return entries_.count(key) != 0;
}

}  // namespace lockstep
