#include "data/format/parquet/piece_cache.h"

#include <algorithm>

namespace lockstep::parquet {

PieceCache::~PieceCache() { memory_->give(bytes_); }

int64_t PieceCache::use_memory(std::shared_ptr<ByteBudget> memory) {
  const std::lock_guard lock(mutex_);
  if (memory_->limit() != INT64_MAX) return 0;
  memory_ = std::move(memory);
  memory_->take(bytes_);
  limit_ = std::min(limit_, memory_->limit() / 4);
  trim();
  return limit_;
}

void PieceCache::take(int64_t bytes) {
  bytes_ += bytes;
  memory_->take(bytes);
}

std::shared_ptr<PieceCache::Entry> PieceCache::entry(const PieceKey& key, bool add) {
  const auto found = entries_.find(key);
  if (found != entries_.end()) {
    order_.splice(order_.begin(), order_, found->second->used);
    return found->second;
  }
  if (!add) return nullptr;
  auto made = std::make_shared<Entry>();
  order_.push_front(key);
  made->used = order_.begin();
  entries_.emplace(key, made);
  return made;
}

std::shared_ptr<const Piece> PieceCache::find(const PieceKey& key) {
  const std::lock_guard lock(mutex_);
  const auto found = entry(key, false);
  return found ? found->piece : nullptr;
}

std::shared_ptr<const Piece> PieceCache::get(const PieceKey& key, const std::function<Piece()>& make) {
  std::shared_ptr<Entry> wanted;
  {
    const std::lock_guard lock(mutex_);
    wanted = entry(key, true);
    if (wanted->piece) return wanted->piece;
  }
  const std::lock_guard making(wanted->making);
  {
    const std::lock_guard lock(mutex_);
    if (wanted->piece) return wanted->piece;
  }
  auto piece = std::make_shared<const Piece>(make());
  const std::lock_guard lock(mutex_);
  wanted->piece = piece;
  const auto held = entries_.find(key);
  if (held == entries_.end() || held->second != wanted) return piece;  // let go in the meantime
  take(piece->bytes());
  trim();
  return piece;
}

void PieceCache::trim() {
  auto last = order_.end();
  while (bytes_ > limit_ && last != order_.begin()) {
    --last;
    const auto oldest = entries_.find(*last);
    if (!oldest->second->piece) continue;  // being made
    take(-oldest->second->piece->bytes());
    last = order_.erase(last);
    entries_.erase(oldest);
  }
}

}  // namespace lockstep::parquet
