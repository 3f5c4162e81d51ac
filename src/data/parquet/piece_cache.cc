#include "data/parquet/piece_cache.h"

#include <algorithm>

namespace lockstep::parquet {
namespace {

// Without its dictionaries a block takes as long to decode as a whole row group: blocks that are loaded ahead
// must not drive them out.
constexpr int64_t kShare = 3;
// Of all memory, what pieces beyond that share leave to others.
constexpr int64_t kFreeShare = 8;

}  // namespace

PieceCache::~PieceCache() { memory_->give(bytes_); }

void PieceCache::use_memory(std::shared_ptr<ByteBudget> memory) {
  const std::lock_guard lock(mutex_);
  if (memory_->limit() != INT64_MAX) return;
  memory_ = std::move(memory);
  memory_->take(bytes_);
  trim();
}

// Whoever makes a piece has taken from the budget what loading its block needs: where that and an eighth are
// left, blocks and batches never go for the sake of pieces, and some blocks can be loaded ahead.
int64_t PieceCache::room() const {
  const int64_t all = memory_->limit();
  const int64_t others = memory_->used() - bytes_;
  return std::min(limit_, std::max(all / kShare, all - all / kFreeShare - others));
}

void PieceCache::find(std::span<PieceUse> uses) {
  const std::lock_guard lock(mutex_);
  for (PieceUse& use : uses) {
    const auto found = entries_.find(use.key);
    if (found == entries_.end()) continue;
    note_use(found);
    use.piece = found->second->piece;
  }
}

std::shared_ptr<const Piece> PieceCache::get(const PieceKey& key, const std::function<Piece()>& make) {
  std::shared_ptr<Entry> wanted;
  {
    const std::lock_guard lock(mutex_);
    const auto entry = entries_.try_emplace(key).first;
    if (!entry->second) entry->second = std::make_shared<Entry>();
    note_use(entry);
    wanted = entry->second;
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
  Order& order = order_of(key);
  wanted->place = order.insert(order.end(), held);
  bytes_ += piece->bytes();
  memory_->take(piece->bytes());
  trim();
  return piece;
}

void PieceCache::used(std::span<const PieceUse> uses) {
  const std::lock_guard lock(mutex_);
  for (const PieceUse& use : uses) {
    const auto found = entries_.find(use.key);
    if (found == entries_.end() || found->second->piece != use.piece || use.key.is_dictionary()) continue;
    found->second->rows_used += use.rows;
    if (found->second->rows_used >= use.piece->rows) drop(found);
  }
  trim();
}

void PieceCache::note_use(Entries::iterator entry) {
  if (!entry->second->piece) return;  // not in the order before it is made
  Order& order = order_of(entry->first);
  order.splice(order.end(), order, entry->second->place);
}

void PieceCache::drop(Entries::iterator entry) {
  order_of(entry->first).erase(entry->second->place);
  const int64_t bytes = entry->second->piece->bytes();
  bytes_ -= bytes;
  memory_->give(bytes);
  entries_.erase(entry);
}

void PieceCache::trim() {
  while (bytes_ > room()) {
    Order& order = pages_.empty() ? dictionaries_ : pages_;
    if (order.empty()) return;  // all are being made
    drop(order.front());
  }
}

}  // namespace lockstep::parquet
