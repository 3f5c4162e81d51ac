#include "data/cache/row_cache_source.h"

#include <algorithm>
#include <bit>
#include <filesystem>

#include "base/error.h"
#include "base/guarded_read.h"
#include "base/log.h"

namespace lockstep {
namespace {

constexpr int64_t kLine = 64;
// Rows are asked for and copied in groups that fit into a processor's nearest cache, so that all of
// a group are on their way from memory at the same time.
constexpr int64_t kGroupBytes = 16 << 10;
constexpr int64_t kLeastGroup = 8, kMostGroup = 128;
// Of a row; what follows these bytes the processor fetches by itself.
constexpr int64_t kPrefetched = 1024;

void prefetch(const std::byte* row, int64_t bytes) {
  for (int64_t at = 0; at < bytes; at += kLine) __builtin_prefetch(row + at);
  __builtin_prefetch(row + bytes - 1);
}

}  // namespace

// What goes on under a guard, which may be left anywhere: only plain data.
struct RowCacheSource::Group {
  std::span<const PlacedRow> rows;
  int64_t row_bytes;
  const RowWriter& writer;

  // Nothing else is read under the guard, so whatever lies between the rows does not matter.
  void guard(GuardedRange& range) const {
    const auto [low, high] = std::minmax_element(
        rows.begin(), rows.end(), [](const PlacedRow& a, const PlacedRow& b) { return a.from < b.from; });
    range.begin = low->from;
    range.end = high->from + row_bytes;
  }

  static void copy(void* context, GuardedRange& range) {
    const auto& self = *static_cast<const Group*>(context);
    self.guard(range);
    self.writer.copy(self.rows);
  }
};

RowCacheSource::RowCacheSource(const std::shared_ptr<const FileSource>& source,
                               std::vector<CachedShard> shards, std::chrono::nanoseconds check_every)
    : WrappedSource(source),
      shards_(std::move(shards)),
      layout_(source->columns()),
      group_(static_cast<size_t>(
          std::clamp(kGroupBytes / std::max<int64_t>(layout_.row_bytes(), 1), kLeastGroup, kMostGroup))),
      check_every_(check_every),
      counters_(source->stages()->memory()),
      damaged_(shards_.size()) {
  const int64_t records = source->size();
  for (const CachedShard& shard : shards_) {
    LOCKSTEP_CHECK(shard.rows->header().row_bytes == layout_.row_bytes(), "rows of {} bytes, not {}",
                   shard.rows->header().row_bytes, layout_.row_bytes());
    firsts_.push_back(shard.first);
  }
  firsts_.push_back(records);
}

int64_t RowCacheSource::bytes() const {
  int64_t bytes = 0;
  for (const CachedShard& shard : shards_) bytes += shard.rows->header().file_bytes();
  return bytes;
}

size_t RowCacheSource::shard_of(int64_t record) const {
  return static_cast<size_t>(std::upper_bound(firsts_.begin(), firsts_.end(), record) - firsts_.begin() - 1);
}

void RowCacheSource::fill(std::span<const int64_t> records, Batch& batch) const {
  check_fill(records, batch);
  const RowWriter writer(layout_, nullptr, batch);
  thread_local std::vector<PlacedRow> rows;
  thread_local std::vector<uint32_t> left;
  left.clear();
  int64_t copied = 0;
  const Clock::time_point begin = Clock::now();
  for (size_t at = 0; at < records.size(); at += group_) {
    const auto some = records.subspan(at, std::min(group_, records.size() - at));
    rows.clear();
    locate(some, static_cast<uint32_t>(at), rows, left);
    Group group{rows, layout_.row_bytes(), writer};
    if (!rows.empty() && !read_guarded(Group::copy, &group)) give_up(rows, records, left);
    for (uint32_t r = 0; r < some.size(); ++r)
      if (some[r] == kNoRecord) writer.clear(static_cast<uint32_t>(at) + r);
    copied += static_cast<int64_t>(rows.size());
  }
  const Clock::time_point end = Clock::now();
  counters_.add(InputStage::kAssemble,
                std::chrono::duration_cast<std::chrono::nanoseconds>(end - begin).count());
  counters_.count_block(copied * layout_.row_bytes(), copied);
  counters_.count_used(static_cast<int64_t>(records.size()));
  if (!left.empty()) decode(records, left, batch);
  check_files(end);
}

void RowCacheSource::locate(std::span<const int64_t> records, uint32_t place, std::vector<PlacedRow>& rows,
                            std::vector<uint32_t>& left) const {
  const int64_t ahead = std::min(layout_.row_bytes(), kPrefetched);
  for (const int64_t record : records) {
    const uint32_t row = place++;
    if (record == kNoRecord) continue;
    const size_t shard = shard_of(record);
    const RowFile& file = *shards_[shard].rows;
    const int64_t in_shard = record - firsts_[shard];
    if (!file.check(in_shard)) {
      note_damage(shard, in_shard);
      left.push_back(row);
      continue;
    }
    const std::byte* const from = file.row(in_shard);
    prefetch(from, ahead);
    rows.push_back({from, row});
  }
}

void RowCacheSource::give_up(std::span<const PlacedRow> rows, std::span<const int64_t> records,
                             std::vector<uint32_t>& left) const {
  for (const PlacedRow& row : rows) {
    const int64_t record = records[row.place];
    const size_t shard = shard_of(record);
    std::vector<char> bytes(static_cast<size_t>(layout_.row_bytes()));
    const int64_t in_shard = record - firsts_[shard];
    try {
      shards_[shard].rows->file().read(kRowsBegin + in_shard * layout_.row_bytes(), bytes);
    } catch (const UserError&) {
      note_damage(shard, in_shard);
    }
    left.push_back(row.place);
  }
}

// The name may stand for another file by now, which somebody made anew.
void RowCacheSource::note_damage(size_t shard, int64_t record) const {
  if (damaged_[shard].exchange(true)) return;
  const ByteSource& file = shards_[shard].rows->file();
  const int64_t chunk = shards_[shard].rows->header().chunk_rows();
  log_warn(
      "{}: {} rows from there on are damaged or cannot be read; such rows are decoded from the data instead, "
      "and the file is made again at the next start",
      file.place(kRowsBegin + record / chunk * chunk * layout_.row_bytes()), chunk);
  try {
    if (open_file(file.name())->stamp() == file.stamp()) std::filesystem::remove(file.name());
  } catch (const std::exception& error) {
    log_warn("{}: cannot be removed: {}", file.name(), error.what());
  }
}

void RowCacheSource::decode(std::span<const int64_t> records, std::span<const uint32_t> left,
                            Batch& batch) const {
  const StageCounters::Timer timer(counters_, InputStage::kDecode);
  for (const uint32_t row : left) {
    Batch one = batch.rows(row, 1);
    wrapped().fill(records.subspan(row, 1), one);
  }
}

void RowCacheSource::check_files(Clock::time_point now) const {
  const int64_t time = now.time_since_epoch().count();
  int64_t before = checked_.load(std::memory_order_relaxed);
  if (time - before < check_every_.count() || !checked_.compare_exchange_strong(before, time)) return;
  for (const CachedShard& shard : shards_) shard.rows->file().check_unchanged(kRowsBegin);
}

void require_rows_keep(const FileSource& source) {
  if (source.varies())
    throw UserError("data.cache: rows that a transform makes at random are others in every epoch; remove it");
}

std::shared_ptr<const RowCacheSource> keep_rows(const std::shared_ptr<const FileSource>& source,
                                                const RowCacheOptions& options) {
  require_rows_keep(*source);
  return std::make_shared<RowCacheSource>(source, open_row_cache(*source, options));
}

}  // namespace lockstep
