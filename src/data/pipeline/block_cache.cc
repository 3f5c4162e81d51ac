#include "data/pipeline/block_cache.h"

#include <immintrin.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "data/order/permutation.h"

namespace lockstep {
namespace {

// Memory is short where half of so many loads are for at least the third time. A few of them now and then are
// an accident: an epoch that was resumed in its middle leaves blocks behind that are not used up, and each of
// them comes back; so do some where memory just holds what is mixed.
constexpr int64_t kThrashing = 128;
// What an expected record takes beside its row and its place in the plan.
constexpr int64_t kExpectedBytes = 16;
constexpr int64_t kShares = 64;
// Where memory is short, each block is loaded about once while as many records are used as are known. Twice
// as many loads as that makes, in such a part of it, come together.
constexpr int64_t kParts = 8;
constexpr int64_t kTogether = 2;
// Blocks that an order has open: 16 lanes of 64.
constexpr size_t kMostApart = 1024;
// A block counts as used lately until so many records were used for each block there is.
constexpr int64_t kLately = 2;
constexpr int kSpins = 200;
// Such a part of the memory is left to what others take a little of at a time (plans, unpacked pages): where
// all blocks are being read, none can go for them.
constexpr int64_t kMargin = 128;

// Blocks that are remembered while rows are looked for; two in one place cost another look.
constexpr size_t kSeen = 256;
// Which records were used is kept where less than this part of the memory is free.
constexpr int64_t kShort = 4;

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

BlockCache::BlockCache(const BlockCacheOptions& options)
    : options_(options), kept_(static_cast<size_t>(options.keep_all)) {
  if (kept_.empty())
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
  if (!kept_.empty())
    if (const RowBlock* block = kept_[static_cast<size_t>(key)].load(std::memory_order_acquire))
      return {block, this, key, nullptr, 0};
  const auto held_by = [&](const RowBlock& block) {
    return std::all_of(records.begin(), records.end(), [&](uint32_t record) { return block.holds(record); });
  };
  std::unique_lock lock = lock_soon(mutex_);
  if (const auto found = entries_.find(key);
      found != entries_.end() && found->second.block && held_by(*found->second.block))
    return use(key, found->second, records, 0);
  const auto start = std::chrono::steady_clock::now();
  const auto waited = [&] {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - start)
        .count();
  };
  bool reloaded = false;
  for (;;) {
    const auto found = entries_.find(key);
    if (found != entries_.end() && found->second.block) {
      if (held_by(*found->second.block)) return use(key, found->second, records, waited());
      if (found->second.readers == 0) {
        drop(key);
        reloaded = true;
      }
    }
    const auto loading = entries_.find(key);
    if (loading == entries_.end() && make_room()) break;
    if (loading != entries_.end() && !loading->second.block) {
      loading->second.awaited = true;
      loaded_.wait(lock);
    } else {
      ++want_room_;
      room_.wait(lock);
      --want_room_;
    }
  }
  note_loaded_again(key);
  const int64_t epoch = forget_need(key);
  const std::vector<uint32_t> only = wanted(key, records, reloaded);
  Entry& entry = begin_load(key);
  entry.epoch = epoch;
  lock.unlock();
  std::unique_ptr<RowBlock> loaded;
  try {
    loaded = load(only);
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
  if (const auto apart = apart_.find(key); apart != apart_.end())
    entry.due -= static_cast<int32_t>(std::exchange(apart->second.records, 0));
  most_loads_ = std::max(most_loads_, ++loads_);
  if (sparse_) note_load();
  if (++loads_of_these_ == kThrashing) loads_of_these_ = again_ = 0;
  bytes_ += options_.loading;
  return entry;
}

void BlockCache::end_load(int64_t key, Entry& entry, std::unique_ptr<RowBlock> loaded) {
  --loads_;
  take(loaded->bytes() - options_.loading);
  entry.block = std::move(loaded);
  entry.due += static_cast<int32_t>(entry.block->records());
  entry.moved = uses_;
  const int64_t limit = options_.memory->limit();
  if (!sparse_ && kept_.empty() && bytes_ + used_by_others() > limit - limit / kShort)
    entry.used.assign(static_cast<size_t>(entry.block->records() + 63) / 64, 0);
  if (entry.ahead) {
    ahead_.emplace(entry.turn, key);
  } else {
    recent_.push_front(key);
    entry.recent = recent_.begin();
  }
  if (!kept_.empty()) kept_[static_cast<size_t>(key)].store(entry.block.get(), std::memory_order_release);
  if (std::exchange(entry.awaited, false)) loaded_.notify_all();
  if (want_room_ > 0) room_.notify_all();
}

void BlockCache::fail_load(int64_t key) {
  --loads_;
  take(-options_.loading);
  entries_.erase(key);
  loaded_.notify_all();
  room_.notify_all();
}

void BlockCache::find(std::span<Wanted> records, Found& found) {
  if (!kept_.empty()) {
    for (Wanted& wanted : records)
      if (const RowBlock* block = kept_[static_cast<size_t>(wanted.key)].load(std::memory_order_acquire))
        wanted.row = block->row(wanted.record);
    return;
  }
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
        touch(key, *entry);
      }
    }
    if (entry == nullptr || !entry->block->holds(wanted.record)) continue;
    wanted.row = entry->block->row(wanted.record);
    ++uses_;
    --entry->due;
    if (!entry->used.empty()) note_used(*entry, {&wanted.record, 1});
    if (sparse_) forget_expected(key, {&wanted.record, 1});
  }
}

BlockCache::Use BlockCache::use(int64_t key, Entry& entry, std::span<const uint32_t> records,
                                int64_t waited) {
  if (!kept_.empty()) return {entry.block.get(), this, key, nullptr, waited};
  uses_ += static_cast<int64_t>(records.size());
  entry.due -= static_cast<int32_t>(records.size());
  if (!entry.used.empty()) note_used(entry, records);
  ++entry.readers;
  forget_expected(key, records);
  touch(key, entry);
  return {entry.block.get(), this, key, &entry, waited};
}

void BlockCache::forget_expected(int64_t key, std::span<const uint32_t> records) {
  const auto expected = expected_.find(key);
  if (expected == expected_.end()) return;
  for (const uint32_t record : records)
    if (const auto at = std::find(expected->second.begin(), expected->second.end(), record);
        at != expected->second.end()) {
      expected->second.erase(at);
      --expected_records_;
    }
  if (expected->second.empty()) expected_.erase(expected);
}

bool BlockCache::read_apart(int64_t key, std::span<const uint32_t> records,
                            const std::function<bool()>& is_little) {
  if (!begins_) return false;
  const auto decided = [&] {
    const auto apart = apart_.find(key);
    return (apart == apart_.end() ? apart_.size() >= kMostApart : apart->second.times >= options_.apart) ||
           entries_.contains(key);
  };
  {
    const std::unique_lock lock = lock_soon(mutex_);
    if (decided()) return false;
  }
  const bool little = is_little();
  const std::lock_guard lock(mutex_);
  if (decided()) return false;
  // Of a block that is loaded instead none count as read, and nobody asks again.
  Apart& apart = apart_[key];
  apart.times = little ? apart.times + 1 : options_.apart;
  apart.records += little ? static_cast<int64_t>(records.size()) : 0;
  begins_ = apart_.size() < kMostApart;
  if (little) forget_expected(key, records);
  return little;
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

void BlockCache::touch(int64_t key, Entry& entry) {
  if (!entry.ahead) {
    // Moving it touches its neighbours, which no cache holds: those used lately stay where they are.
    if (uses_ - entry.moved < kLately * static_cast<int64_t>(recent_.size())) return;
    entry.moved = uses_;
    recent_.splice(recent_.begin(), recent_, entry.recent);
    return;
  }
  entry.moved = uses_;
  entry.ahead = false;
  ahead_.erase(entry.turn);
  recent_.push_front(key);
  entry.recent = recent_.begin();
}

void BlockCache::set_ahead(int64_t key, Entry& entry, int64_t turn) {
  recent_.erase(entry.recent);
  entry.ahead = true;
  entry.turn = turn;
  ahead_.emplace(turn, key);
}

std::unique_ptr<const RowBlock> BlockCache::end_use(int64_t key, Entry& entry) {
  if (--entry.readers > 0) return nullptr;
  // What this epoch had of it is used; the next one is still to come.
  if (entry.next_turn != 0 && !entry.ahead && entry.block->whole() && entry.due <= entry.block->records())
    set_ahead(key, entry, std::exchange(entry.next_turn, 0));
  if (!used_up(key, entry)) {
    if (!entry.used.empty() && !entry.listed && entry.next_turn == 0 &&
        2 * entry.due <= entry.block->records()) {
      entry.listed = true;
      half_used_.push_back(key);
    }
    return nullptr;
  }
  if (entry.next_turn != 0) add_need(entry.next_turn, {key, entry.epoch});
  dropped_early_.erase(key);
  return drop(key);
}

bool BlockCache::used_up(int64_t key, const Entry& entry) const {
  return sparse_ ? expected_.count(key) == 0 : entry.due <= 0;
}

// Where nothing is left to let go and nobody is at work, one block is loaded whatever others have taken.
bool BlockCache::make_room() {
  const int64_t others = kept_.empty() ? options_.memory->limit() / kMargin : 0;
  while (let_go(options_.loading + others))
    if (options_.memory->try_take(options_.loading)) return true;
  if (loads_ > 0 || !recent_.empty() || !ahead_.empty()) return false;
  options_.memory->count(options_.loading);
  return true;
}

bool BlockCache::let_go(int64_t bytes) {
  const ByteBudget& memory = *options_.memory;
  const auto fits = [&] { return memory.used() + bytes <= memory.limit(); };
  shrink_until(fits);
  for (auto at = ahead_.end(); !fits() && at != ahead_.begin();) {
    const auto [turn, key] = *--at;
    const Entry& entry = entries_.at(key);
    if (entry.readers > 0) continue;
    if (!sparse_) add_need(turn, {key, entry.epoch});
    ++at;
    drop(key);
  }
  for (auto at = recent_.end(); !fits() && at != recent_.begin();) {
    const int64_t key = *--at;
    if (entries_.at(key).readers > 0) continue;
    ++at;  // stays valid when the one before it goes
    if (!sparse_) ++dropped_early_[key];
    drop(key);
  }
  return fits();
}

void BlockCache::note_used(Entry& entry, std::span<const uint32_t> records) {
  for (const uint32_t record : records) entry.used[record / 64] |= uint64_t{1} << record % 64;
}

void BlockCache::shrink_until(const std::function<bool()>& fits) {
  while (!fits() && !half_used_.empty()) {
    const int64_t key = half_used_.back();
    half_used_.pop_back();
    const auto found = entries_.find(key);
    if (found == entries_.end() || !found->second.listed) continue;
    Entry& entry = found->second;
    entry.listed = false;
    if (entry.readers > 0 || entry.next_turn != 0) continue;
    // Both are there for a moment.
    const int64_t half = entry.block->bytes_of_some(entry.block->records() / 2);
    if (!options_.memory->try_take(half)) return;
    std::unique_ptr<RowBlock> smaller = entry.block->without(entry.used);
    options_.memory->give(half);
    if (!smaller) continue;
    take(smaller->bytes() - entry.block->bytes());
    entry.block = std::move(smaller);
  }
}

std::unique_ptr<const RowBlock> BlockCache::drop(int64_t key) {
  const auto found = entries_.find(key);
  take(-found->second.block->bytes());
  if (found->second.ahead)
    ahead_.erase(found->second.turn);
  else
    recent_.erase(found->second.recent);
  std::unique_ptr<const RowBlock> block = std::move(found->second.block);
  entries_.erase(found);
  return block;
}

void BlockCache::take(int64_t bytes) {
  bytes_ += bytes;
  options_.memory->count(bytes);
}

void BlockCache::note_loaded_again(int64_t key) {
  if (sparse_) return;
  const auto found = dropped_early_.find(key);
  if (found == dropped_early_.end() || found->second < 2 || 2 * ++again_ < kThrashing) return;
  sparse_ = true;
  dropped_early_.clear();
  forget_needs();
}

void BlockCache::note_load() {
  const int64_t part = horizon() / kParts, since = uses_ - lately_since_;
  if (since >= part) {
    loaded_before_ = since < 2 * part ? loaded_lately_ : 0;
    loaded_lately_ = 0;
    lately_since_ = uses_;
  }
  ++loaded_lately_;
}

bool BlockCache::load_together() const {
  return std::max(loaded_lately_, loaded_before_) * kParts > kTogether * std::ssize(entries_);
}

// Blocks that are loaded together take different shares of what is expected of them, so that they do not all
// come to be loaded again together, for which steps would wait each time: the first time any share, later at
// least half, since each load more than is needed costs as much as one that is.
std::vector<uint32_t> BlockCache::wanted(int64_t key, std::span<const uint32_t> records,
                                         bool reloaded) const {
  if (!sparse_) return {};
  std::vector<uint32_t> all(records.begin(), records.end());
  if (const auto expected = expected_.find(key); expected != expected_.end()) {
    const auto size = static_cast<int64_t>(expected->second.size());
    const auto share = static_cast<int64_t>(mix64(static_cast<uint64_t>(key)) % kShares) + 1;
    const int64_t later = load_together() ? (kShares + share) / 2 : kShares;
    const int64_t kept = size * (reloaded ? later : share) / kShares;
    all.insert(all.end(), expected->second.begin(), expected->second.begin() + kept);
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

int64_t BlockCache::looks_ahead() const {
  if (!sparse_) return 0;
  const std::lock_guard lock(mutex_);
  return horizon();
}

int64_t BlockCache::horizon() const {
  const int64_t on_their_way = options_.memory->limit() / 16 + (most_loads_ + 1) * options_.loading;
  return std::max<int64_t>(0, options_.memory->limit() - used_by_others() - on_their_way) /
         (options_.row_bytes + kExpectedBytes);
}

void BlockCache::expect(int64_t key, std::span<const uint32_t> records) {
  const std::lock_guard lock(mutex_);
  if (!entries_.contains(key)) add_need(++turns_, {key, 0, uses_ + expected_records_});
  std::vector<uint32_t>& expected = expected_[key];
  expected.insert(expected.end(), records.begin(), records.end());
  expected_records_ += static_cast<int64_t>(records.size());
}

void BlockCache::expect_nothing() {
  const std::lock_guard lock(mutex_);
  expected_.clear();
  expected_records_ = 0;
  apart_.clear();
  begins_ = true;
  loaded_lately_ = loaded_before_ = 0;
  lately_since_ = uses_;
  forget_needs();
  while (!ahead_.empty()) drop(ahead_.begin()->second);
}

bool BlockCache::is_loading(int64_t key) const {
  const std::unique_lock lock = lock_soon(mutex_);
  const auto found = entries_.find(key);
  return found != entries_.end() && !found->second.block;
}

bool BlockCache::holds(int64_t key) const {
  if (!kept_.empty()) return kept_[static_cast<size_t>(key)].load(std::memory_order_relaxed) != nullptr;
  const std::lock_guard lock(mutex_);
  return entries_.count(key) != 0;
}

}  // namespace lockstep
