#include "data/pipeline/block_cache.h"

#include <algorithm>

namespace lockstep {

std::shared_ptr<const RowBlock> BlockCache::get(int64_t key, int64_t uses, const Load& load) {
  std::unique_lock lock(mutex_);
  for (;;) {
    const auto found = entries_.find(key);
    if (found != entries_.end() && found->second.block) return use(found->second, key, uses);
    if (found == entries_.end() && make_room()) break;
    changed_.wait(lock);
  }
  entries_[key];
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
  Entry& entry = entries_.at(key);
  entry.block = std::move(loaded);
  recent_.push_front(key);
  entry.recent = recent_.begin();
  changed_.notify_all();
  return use(entry, key, uses);
}

std::shared_ptr<const RowBlock> BlockCache::use(Entry& entry, int64_t key, int64_t uses) {
  std::shared_ptr<const RowBlock> block = entry.block;
  entry.used += uses;
  recent_.splice(recent_.begin(), recent_, entry.recent);
  if (!options_.keep_all && entry.used >= block->records()) drop(key);
  return block;
}

bool BlockCache::make_room() {
  while (bytes_ + (loads_ + 1) * options_.loading > options_.limit && !recent_.empty()) drop(recent_.back());
  return loads_ == 0 || bytes_ + (loads_ + 1) * options_.loading <= options_.limit;
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
