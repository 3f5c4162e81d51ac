#include "data/shards/shard_set.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>

#include "base/error.h"
#include "base/log.h"
#include "base/sha256.h"
#include "base/thread_pool.h"
#include "data/bytes/byte_source.h"
#include "data/order/order.h"
#include "data/shards/sidecar.h"

namespace lockstep {
namespace {

std::vector<std::unique_ptr<ByteSource>> open_all(const std::vector<std::string>& files,
                                                  const IndexFolder& folder) {
  std::vector<std::unique_ptr<ByteSource>> shards;
  for (const std::string& path : files) shards.push_back(open_shard(path, folder));
  return shards;
}

}  // namespace

ShardSet::ShardSet(std::unique_ptr<Format> format, const std::vector<std::string>& files,
                   const ShardSetOptions& options)
    : ShardSet(std::move(format), open_all(files, options.index_folder), options) {}

ShardSet::ShardSet(std::unique_ptr<Format> format, std::vector<std::unique_ptr<ByteSource>> shards,
                   const ShardSetOptions& options) {
  auto opened = std::make_shared<Opened>();
  opened->format = std::move(format);
  opened->bytes = std::move(shards);
  if (opened->bytes.empty()) throw UserError("no data files are given");
  opened->fields = opened->format->fields(*opened->bytes[0]);
  if (options.check_columns) opened->format->check_columns(opened->bytes);
  index_shards(*opened, options);
  opened_ = opened;
  check_bad(options);
  std::vector<DataShard> entries;
  for (size_t i = 0; i < opened->bytes.size(); ++i) {
    const ByteSource& bytes = *opened->bytes[i];
    const ShardIndex& index = opened->indexes[i];
    opened->decoders.push_back(opened->format->open(bytes, index));
    entries.push_back({bytes.name(), bytes.size(), index.records, index.content});
  }
  opened->manifest = std::make_unique<DataManifest>(std::move(entries));
}

ShardSet ShardSet::select(std::shared_ptr<const RecordSet> only, std::string definition) const {
  LOCKSTEP_CHECK(!only_ && only->records() == manifest().records(), "a set of {} records for {}",
                 only->records(), manifest().records());
  return {opened_, std::move(only), std::move(definition)};
}

void ShardSet::index_shards(Opened& opened, const ShardSetOptions& options) {
  const Format& format = options.indexed_by != nullptr ? *options.indexed_by : *opened.format;
  const auto& bytes = opened.bytes;
  int64_t all = 0;
  for (const auto& shard : bytes) all += shard->size();
  std::atomic<int64_t> done = 0;
  const Format::Progress progress = [&](int64_t looked_at) {
    const int64_t now = done += looked_at;
    if (options.progress) options.progress(now, all);
  };
  opened.indexes.resize(bytes.size());
  ThreadPool pool(std::clamp<int>(options.threads, 1, static_cast<int>(bytes.size())));
  pool.run(static_cast<int64_t>(bytes.size()), [&](int64_t task) {
    const auto i = static_cast<size_t>(task);
    const bool text = bytes[i]->stamp().ends_with(" text");
    if (text) {
      opened.indexes[i] = build_index(format, *bytes[i], progress);
      return;
    }
    IndexResult result = index_of_file(format, *bytes[i], options.index_folder, progress);
    if (!result.built) progress(bytes[i]->size());
    opened.indexes[i] = std::move(result.index);
  });
}

std::vector<std::string> ShardSet::bad_records() const {
  std::vector<std::string> all;
  for (size_t i = 0; i < opened_->bytes.size(); ++i)
    for (const BadRecord& record : index(i).bad)
      all.push_back(
          fmt::format("{} at byte {}: {}", opened_->bytes[i]->name(), record.offset, record.reason));
  return all;
}

int64_t ShardSet::bad_count() const {
  int64_t bad = 0;
  for (const ShardIndex& index : opened_->indexes)
    for (const BadRecord& record : index.bad) bad += record.records;
  return bad;
}

void ShardSet::check_bad(const ShardSetOptions& options) const {
  const int64_t bad = bad_count();
  int64_t records = bad;
  for (const ShardIndex& index : opened_->indexes) records += index.records;
  if (static_cast<double>(bad) <= options.most_bad * static_cast<double>(records)) return;
  throw UserError("{} of {} records cannot be used, more than the share of {} that is allowed; the first: {}",
                  bad, records, options.most_bad, bad_records()[0]);
}

// Records so far apart that what lies between them is not worth reading; a granule is seldom longer.
constexpr int64_t kLongestGap = 64;
// Longer pages are unpacked more than once: with longer blocks too few of them would be mixed.
constexpr int64_t kMostUnpacked = 8192;
constexpr int64_t kLeastWindow = 4;

int64_t ShardSet::block_records() const {
  const int64_t usual = manifest().block_records();
  int64_t together = 0;
  for (const auto& decoder : opened_->decoders) together = std::max(together, decoder->unpacked_together());
  together = std::min(together, kMostUnpacked);
  return std::max(usual, static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(together))));
}

int64_t ShardSet::order_window() const {
  const int64_t larger = block_records() / manifest().block_records();
  return std::max(OrderShape{}.window / larger, kLeastWindow);
}

int64_t ShardSet::bytes_of(int64_t count) const {
  const int64_t each = manifest().bytes() / manifest().records();
  if (!only_) return each * count;
  const int64_t apart = (manifest().records() + records() - 1) / std::max<int64_t>(records(), 1);
  return each * count * std::min(apart, kLongestGap);
}

std::vector<ShardSet::Range> ShardSet::ranges_of(int64_t first, int64_t count,
                                                 std::vector<uint8_t>& marks) const {
  if (!only_) return {{first, count}};
  std::vector<Range> ranges;
  std::vector<int64_t> records(static_cast<size_t>(count));
  only_->copy(first, records);
  for (const int64_t record : records) {
    if (ranges.empty() || record - (ranges.back().first + ranges.back().count) >= kLongestGap)
      ranges.push_back({record, 0});
    const auto between = static_cast<size_t>(record - ranges.back().first - ranges.back().count);
    ranges.back().count = record + 1 - ranges.back().first;
    marks.insert(marks.end(), between, 0);
    marks.push_back(1);
  }
  return ranges;
}

template <typename Part>
void ShardSet::for_each_shard(const Range& range, const Part& part) const {
  int64_t first = range.first, count = range.count;
  while (count > 0) {
    const DataManifest::Place place = manifest().locate(first);
    const int64_t here =
        records_together(index(place.shard), place.record,
                         std::min(count, manifest().shards()[place.shard].records - place.record));
    part(place.shard, place.record, here);
    first += here;
    count -= here;
  }
}

int64_t ShardSet::load_ranges(const std::vector<Range>& ranges, BlockScratch& scratch,
                              StageCounters& counters, const Decode& decode) const {
  using Clock = std::chrono::steady_clock;
  scratch.buffers_.reset();
  int64_t decoded = 0, bytes = 0, fetching = 0;
  const auto start = Clock::now();
  for (const Range& range : ranges) {
    for_each_shard(range, [&](size_t shard, int64_t from, int64_t records) {
      Fetch fetch(*opened_->bytes[shard], scratch.buffers_);
      decode(decoder(shard), fetch, from, records);
      bytes += fetch.bytes();
      fetching += fetch.nanoseconds();
    });
    decoded += range.count;
  }
  const auto all = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count();
  counters.add(InputStage::kFetch, fetching);
  counters.add(InputStage::kDecode, all - fetching);
  counters.count_block(bytes, decoded);
  return decoded;
}

void ShardSet::load_compact(int64_t first, int64_t count, std::byte* rows, BlockScratch& scratch,
                            StageCounters& counters) const {
  const int64_t row_bytes = compact_rows()->row_bytes();
  load_ranges({{first, count}}, scratch, counters,
              [&](const ShardDecoder& decoder, Fetch& fetch, int64_t from, int64_t records) {
                decoder.decode_compact(fetch, from, records, rows);
                rows += records * row_bytes;
              });
}

void ShardSet::load(int64_t first, int64_t count, BlockScratch& scratch, StageCounters& counters) const {
  scratch.block.reset(fields(), format().options().missing.get());
  std::vector<uint8_t> marks;
  const std::vector<Range> ranges = ranges_of(first, count, marks);
  const int64_t decoded =
      load_ranges(ranges, scratch, counters,
                  [&](const ShardDecoder& decoder, Fetch& fetch, int64_t from, int64_t records) {
                    decoder.decode(fetch, from, records, scratch.block);
                  });
  LOCKSTEP_CHECK(scratch.block.records == decoded, "{} decoded {} records of {}", format().name(),
                 scratch.block.records, decoded);
  if (const MissingTexts* missing = format().options().missing.get(); missing && !missing->numbers().empty())
    mark_missing_numbers(*missing, scratch.block);
  if (decoded > count) keep_records(marks, scratch.block);
}

std::string ShardSet::describe(int64_t record) const {
  const DataManifest::Place place = manifest().locate(original(record));
  return decoder(place.shard).describe(place.record);
}

std::string ShardSet::fingerprint() const {
  const std::string all = sha256(fmt::format("shards 1\n{} {}\n{}{}\n", format().name(), format().version(),
                                             format().options().text(), manifest().fingerprint()));
  return only_ ? sha256(fmt::format("select 1\n{}\n{}\n", all, definition_)) : all;
}

void warn_of_bad_records(const ShardSet& shards) {
  const int64_t bad = shards.bad_count();
  if (bad == 0) return;
  log_warn("{} of {} records are left out; the first: {}", bad, shards.manifest().records() + bad,
           shards.bad_records()[0]);
}

namespace {

constexpr int64_t kBlockBytes = 64 << 10;
constexpr int64_t kMostBlockRecords = 4096;

}  // namespace

DataManifest::DataManifest(std::vector<DataShard> shards) : shards_(std::move(shards)), firsts_{0} {
  for (const DataShard& shard : shards_) {
    firsts_.push_back(firsts_.back() + shard.records);
    bytes_ += shard.bytes;
  }
  if (records() == 0) throw UserError("the data has no records; give at least one");
}

DataManifest::Place DataManifest::locate(int64_t record) const {
  LOCKSTEP_CHECK(record >= 0 && record < records(), "record {} of {}", record, records());
  const auto after = std::upper_bound(firsts_.begin(), firsts_.end(), record);
  const auto shard = static_cast<size_t>(after - firsts_.begin()) - 1;
  return {shard, record - firsts_[shard]};
}

int64_t DataManifest::block_records() const {
  const int64_t fitting = kBlockBytes / std::max<int64_t>(bytes_ / records(), 1);
  return static_cast<int64_t>(
      std::bit_floor(static_cast<uint64_t>(std::clamp<int64_t>(fitting, 1, kMostBlockRecords))));
}

std::string DataManifest::fingerprint() const {
  std::string text = "manifest 1\n";
  for (const DataShard& shard : shards_) text += fmt::format("{} {}\n", shard.records, shard.content);
  return sha256(text);
}

}  // namespace lockstep
