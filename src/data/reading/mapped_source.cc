#include "data/reading/mapped_source.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.h"
#include "base/guarded_read.h"
#include "base/sha256.h"
#include "data/reading/file_source.h"
#include "data/reading/row_writer.h"

namespace lockstep {
namespace {

constexpr int64_t kLine = 64;
constexpr size_t kMostColumns = 4;
// Of the next row; what follows these bytes the processor fetches by itself.
constexpr int64_t kPrefetched = 4096;

}  // namespace

struct MappedSource::Row {
  ByteSource::Mapped bytes;  // null: it has to be decoded, as where it lies in two files
  int64_t record;
  uint32_t row;  // of the batch
};

// What goes on under a guard, which may be left anywhere: only plain data.
struct MappedSource::Reading {
  const CompactRows& compact;
  std::span<const Row> rows;
  std::array<std::byte*, kMostColumns> columns{};
  std::array<int64_t, kMostColumns> column_bytes{};
  size_t column_count = 0;
  volatile size_t next = 0;  // rows before it are done

  bool guard(size_t row, GuardedRange& range) const {
    const std::byte* const data = rows[row].bytes.data;
    if (data == nullptr) return false;
    range.begin = data;
    range.end = data + compact.row_bytes();
    return true;
  }

  std::array<std::byte*, kMostColumns> columns_of(uint32_t row) const {
    std::array<std::byte*, kMostColumns> at{};
    for (size_t c = 0; c < column_count; ++c) at[c] = columns[c] + row * column_bytes[c];
    return at;
  }

  // Stops at a row that cannot be read, has to be decoded, or does not hold what it should.
  static void expand(void* context, GuardedRange& range) {
    auto& self = *static_cast<Reading*>(context);
    for (size_t now = self.next; now < self.rows.size(); ++now) {
      self.next = now;
      if (now + 1 < self.rows.size()) self.prefetch(self.rows[now + 1].bytes.data);
      if (!self.guard(now, range) || !self.compact.holds(range.begin)) return;
      const auto columns = self.columns_of(self.rows[now].row);
      self.compact.expand(range.begin, std::span(columns).first(self.column_count));
    }
    self.next = self.rows.size();
  }

  void prefetch(const std::byte* row) const {
    if (row == nullptr) return;
    const int64_t bytes = std::min(compact.row_bytes(), kPrefetched);
    for (int64_t at = 0; at < bytes; at += kLine) __builtin_prefetch(row + at);
  }
};

MappedSource::MappedSource(std::shared_ptr<const ShardSet> shards, std::vector<Column> columns,
                           int64_t budget)
    : shards_(std::move(shards)),
      columns_(std::move(columns)),
      layout_(columns_),
      compact_(shards_->compact_rows()),
      block_(shards_->block_records()),
      fingerprint_(sha256("files 1\n" + shards_->fingerprint() + "\n")),
      counters_(budget) {
  LOCKSTEP_CHECK(compact_ != nullptr && columns_.size() <= kMostColumns, "{} columns", columns_.size());
}

bool MappedSource::is_mappable(const ShardSet& shards) {
  if (shards.compact_rows() == nullptr) return false;
  const std::vector<DataShard>& all = shards.manifest().shards();
  for (size_t shard = 0; shard < all.size(); ++shard) {
    const ShardDecoder& decoder = shards.decoder(shard);
    if (all[shard].records == 0) continue;
    if (decoder.compact_span(0).bytes == 0 || !decoder.bytes().mappable()) return false;
  }
  return true;
}

void MappedSource::fill(std::span<const int64_t> records, Batch& batch) const {
  check_fill(records, batch);
  thread_local std::vector<Row> rows;
  const StageCounters::Timer timer(counters_, InputStage::kAssemble);
  locate(records, rows);
  const RowWriter writer(layout_, compact_, batch);
  for (uint32_t r = 0; r < records.size(); ++r)
    if (records[r] == kNoRecord) writer.clear(r);
  Reading reading{.compact = *compact_, .rows = rows, .column_count = columns_.size()};
  for (size_t c = 0; c < columns_.size(); ++c) {
    reading.columns[c] = batch.mutable_data(c);
    reading.column_bytes[c] = layout_.bytes(c);
  }
  for (;;) {
    read_guarded(Reading::expand, &reading);
    if (reading.next >= rows.size()) break;
    const Row& left = rows[reading.next];
    const auto columns = reading.columns_of(left.row);
    fill_decoded(left, std::span(columns).first(reading.column_count));
    reading.next = reading.next + 1;
  }
  check_files(rows);
  counters_.count_block(static_cast<int64_t>(rows.size()) * compact_->row_bytes(),
                        static_cast<int64_t>(rows.size()));
  counters_.count_used(static_cast<int64_t>(records.size()));
}

void MappedSource::locate(std::span<const int64_t> records, std::vector<Row>& rows) const {
  rows.clear();
  for (uint32_t r = 0; r < records.size(); ++r) {
    if (records[r] == kNoRecord) continue;
    const DataManifest::Place place = shards_->manifest().locate(records[r]);
    const ShardDecoder& decoder = shards_->decoder(place.shard);
    const GranuleSpan span = decoder.compact_span(place.record);
    rows.push_back({decoder.bytes().mapped(span.offset, span.bytes), records[r], r});
  }
}

void MappedSource::fill_decoded(const Row& row, std::span<std::byte* const> columns) const {
  BlockScratch scratch;
  std::vector<std::byte> bytes(static_cast<size_t>(compact_->row_bytes()));
  shards_->load_compact(row.record, 1, bytes.data(), scratch, counters_);
  compact_->expand(bytes.data(), columns);
}

// What was read holds if the files are afterwards as they were when they were opened.
void MappedSource::check_files(const std::vector<Row>& rows) const {
  thread_local std::vector<const Row*> files;
  files.clear();
  for (const Row& row : rows)
    if (row.bytes.file != nullptr) files.push_back(&row);
  std::sort(files.begin(), files.end(),
            [](const Row* a, const Row* b) { return a->bytes.file < b->bytes.file; });
  const ByteSource* checked = nullptr;
  for (const Row* row : files)
    if (row->bytes.file != std::exchange(checked, row->bytes.file))
      row->bytes.file->check_unchanged(row->bytes.offset);
}

std::shared_ptr<const Source> open_rows(std::shared_ptr<const ShardSet> shards, std::vector<Column> columns,
                                        int64_t budget) {
  if (MappedSource::is_mappable(*shards))
    return std::make_shared<MappedSource>(std::move(shards), std::move(columns), budget);
  return std::make_shared<FileSource>(std::move(shards), std::vector<std::shared_ptr<const Transform>>{},
                                      FileSourceOptions{std::move(columns), budget});
}

}  // namespace lockstep
