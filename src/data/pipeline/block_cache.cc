#include "data/pipeline/block_cache.h"

#include <algorithm>
#include <chrono>

namespace lockstep {

BlockCache::Use BlockCache::get(int64_t key, int64_t uses, const Load& load) {
  if (!kept_.empty())
    if (const RowBlock* block = kept_[static_cast<size_t>(key)].load(std::memory_order_acquire))
      return {block, this, key, nullptr, 0};
  std::unique_lock lock(mutex_);
  if (const auto found = entries_.find(key); found != entries_.end() && found->second.block)
    return use(key, found->second, uses, 0);
  const auto start = std::chrono::steady_clock::now();
  const auto waited = [&] {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - start)
        .count();
  };
  for (;;) {
    const auto found = entries_.find(key);
    if (found != entries_.end() && found->second.block) return use(key, found->second, uses, waited());
    if (found == entries_.end() && make_room()) break;
    ++waiting_;
    changed_.wait(lock);
    --waiting_;
  }
  Entry& entry = entries_[key];
  ++loads_;
  peak_ = std::max(peak_, bytes_ + loads_ * options_.loading);
  lock.unlock();
  std::unique_ptr<RowBlock> loaded;
  try {
    loaded = load();
  } catch (...) {
    lock.lock();
    --loads_;
    entries_.erase(key);
    changed_.notify_all();
    throw;
  }
  lock.lock();
  --loads_;
  bytes_ += loaded->bytes();
  entry.block = std::move(loaded);
  recent_.push_front(key);
  entry.recent = recent_.begin();
  if (!kept_.empty()) kept_[static_cast<size_t>(key)].store(entry.block.get(), std::memory_order_release);
  if (waiting_ > 0) changed_.notify_all();
  return use(key, entry, uses, waited());
}

BlockCache::Use BlockCache::use(int64_t key, Entry& entry, int64_t uses, int64_t waited) {
  if (!kept_.empty()) return {entry.block.get(), this, key, nullptr, waited};
  entry.used += uses;
  ++entry.readers;
  recent_.splice(recent_.begin(), recent_, entry.recent);
  return {entry.block.get(), this, key, &entry, waited};
}

void BlockCache::give_back(int64_t key, Entry& entry) {
  const std::lock_guard lock(mutex_);
  if (--entry.readers > 0) return;
  if (entry.used >= entry.block->records()) drop(key);
  if (waiting_ > 0) changed_.notify_all();
}

bool BlockCache::make_room() {
  const auto fits = [&] { return bytes_ + (loads_ + 1) * options_.loading <= options_.limit; };
  for (auto at = recent_.end(); !fits() && at != recent_.begin();) {
    const int64_t key = *--at;
    if (entries_.at(key).readers > 0) continue;
    ++at;  // stays valid when the one before it goes
    drop(key);
  }
  return fits();
}

void BlockCache::drop(int64_t key) {
  const auto found = entries_.find(key);
  bytes_ -= found->second.block->bytes();
  recent_.erase(found->second.recent);
  entries_.erase(found);
}

int64_t BlockCache::peak_bytes() const {
  const std::lock_guard lock(mutex_);
  return peak_;
}

}  // namespace lockstep
