#include "data/pipeline/shard_set.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>

#include "base/available_memory.h"
#include "base/error.h"
#include "base/guarded_read.h"
#include "base/log.h"
#include "base/sha256.h"
#include "base/thread_pool.h"
#include "data/format/compressed_source.h"
#include "data/index/sidecar.h"
#include "data/order/order.h"

namespace lockstep {
namespace {

std::vector<std::unique_ptr<ByteSource>> open_all(const std::vector<std::string>& files,
                                                  const std::string& folder) {
  std::vector<std::unique_ptr<ByteSource>> shards;
  for (const std::string& path : files) shards.push_back(open_shard(path, folder));
  return shards;
}

// Reading from a mapped file saves a copy, and nothing else the first time: it pays where the system keeps
// the file. Of memory that is free now the files may take such a part; where they are larger, pages that were
// mapped once would take memory for their addresses alone.
constexpr int64_t kMappedShare = 2;

int64_t most_mapped(const ShardSetOptions& options) {
  return options.most_mapped ? *options.most_mapped : available_memory_bytes() / kMappedShare;
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
  std::vector<ManifestShard> entries;
  for (size_t i = 0; i < opened->bytes.size(); ++i) {
    const ByteSource& bytes = *opened->bytes[i];
    const ShardIndex& index = opened->indexes[i];
    opened->decoders.push_back(opened->format->open(bytes, index));
    entries.push_back({bytes.name(), bytes.size(), index.records, index.content});
  }
  opened->manifest = std::make_unique<Manifest>(std::move(entries));
  opened->mapped = opened->manifest->bytes() <= most_mapped(options);
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
                                                 std::vector<uint8_t>* marks) const {
  if (!only_) return {{first, count}};
  std::vector<Range> ranges;
  std::vector<int64_t> records(static_cast<size_t>(count));
  only_->copy(first, records);
  for (const int64_t record : records) {
    if (ranges.empty() || record - (ranges.back().first + ranges.back().count) >= kLongestGap)
      ranges.push_back({record, 0});
    const auto between = static_cast<size_t>(record - ranges.back().first - ranges.back().count);
    ranges.back().count = record + 1 - ranges.back().first;
    if (marks == nullptr) continue;
    marks->insert(marks->end(), between, 0);
    marks->push_back(1);
  }
  return ranges;
}

template <typename Part>
void ShardSet::for_each_shard(const Range& range, const Part& part) const {
  int64_t first = range.first, count = range.count;
  while (count > 0) {
    const Manifest::Place place = manifest().locate(first);
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
  size_t buffers = 0;
  int64_t fetched = 0;
  const auto load_part = [&](size_t shard, int64_t from, int64_t records) {
    const ShardDecoder& decoder = this->decoder(shard);
    std::vector<std::string_view> texts;
    {
      const StageCounters::Timer timer(counters, InputStage::kFetch);
      for (const GranuleSpan& span : decoder.spans(from, records)) {
        if (buffers == scratch.buffers_.size()) scratch.buffers_.push_back(std::make_unique<std::string>());
        std::string& buffer = *scratch.buffers_[buffers++];
        const auto bytes = static_cast<size_t>(span.bytes);
        if (buffer.size() < bytes + ShardDecoder::kPadding) buffer.resize(bytes + ShardDecoder::kPadding);
        opened_->bytes[shard]->read(span.offset, std::span(buffer).first(bytes));
        std::fill_n(buffer.data() + bytes, ShardDecoder::kPadding, '\0');
        texts.emplace_back(buffer.data(), bytes);
        fetched += span.bytes;
      }
    }
    const StageCounters::Timer timer(counters, InputStage::kDecode);
    decode(decoder, texts, from, records);
  };
  int64_t decoded = 0;
  for (const Range& range : ranges) {
    for_each_shard(range, load_part);
    decoded += range.count;
  }
  counters.count_block(fetched, decoded);
  return decoded;
}

void ShardSet::load_compact(int64_t first, int64_t count, std::byte* rows, BlockScratch& scratch,
                            StageCounters& counters) const {
  const int64_t row_bytes = compact_rows()->row_bytes();
  load_ranges({{first, count}}, scratch, counters,
              [&](const ShardDecoder& decoder, std::span<const std::string_view> texts, int64_t from,
                  int64_t records) {
                decoder.decode_compact(texts, from, records, rows);
                rows += records * row_bytes;
              });
}

bool ShardSet::load_rows(const RowEncoding& encoding, int64_t first, int64_t count,
                         std::span<const uint32_t> only, std::byte* rows, StageCounters& counters) const {
  const auto row_bytes = static_cast<int64_t>(encoding.place_columns().size() * kPlaceBytes);
  int64_t fetched = 0, fetching = 0, decoded = 0;
  bool all = true;
  std::vector<uint32_t> named;
  const auto start = std::chrono::steady_clock::now();
  const auto since = [](std::chrono::steady_clock::time_point begin) {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - begin)
        .count();
  };
  // Records [from, from + records) of a shard, of which the named ones are wanted.
  const auto load_part = [&](size_t shard, int64_t from, int64_t records) {
    const auto timed = [&](int64_t bytes, const auto& fetch) {
      const auto begin = std::chrono::steady_clock::now();
      fetch();
      fetching += since(begin);
      fetched += bytes;
    };
    const ByteSource& file = *opened_->bytes[shard];
    const ShardDecoder::Fetch fetch{
        .read =
            [&](int64_t offset, std::span<char> out) {
              timed(static_cast<int64_t>(out.size()), [&] { file.read(offset, out); });
            },
        .map = [&](int64_t offset, int64_t bytes) -> const std::byte* {
          const std::byte* data = opened_->mapped ? file.mapped(offset, bytes).data : nullptr;
          if (data == nullptr) return nullptr;
          timed(bytes, [&] {
            if (!bring_to_memory(data, static_cast<size_t>(bytes))) data = nullptr;
          });
          return data;
        }};
    all = all && decoder(shard).decode_rows(encoding, from, records, named, fetch, rows);
    const int64_t made = named.empty() ? records : static_cast<int64_t>(named.size());
    rows += made * row_bytes;
    decoded += made;
  };
  std::vector<uint8_t> marks;
  size_t next = 0, mark = 0;
  int64_t record = 0;  // of those that are asked for
  for (const Range& range : ranges_of(first, count, &marks))
    for_each_shard(range, [&](size_t shard, int64_t from, int64_t records) {
      named.clear();
      const bool some = !marks.empty() || !only.empty();
      const auto want = [&](int64_t r) { named.push_back(static_cast<uint32_t>(r)); };
      if (marks.empty()) {
        for (; next < only.size() && only[next] < record + records; ++next) want(only[next] - record);
        record += records;
      }
      for (int64_t r = 0; !marks.empty() && r < records; ++r) {
        if (marks[mark++] == 0) continue;
        const bool wanted = only.empty() || (next < only.size() && only[next] == record);
        if (wanted && !only.empty()) ++next;
        if (wanted) want(r);
        ++record;
      }
      if (some && named.empty()) return;
      if (static_cast<int64_t>(named.size()) == records) named.clear();
      load_part(shard, from, records);
    });
  counters.add(InputStage::kFetch, fetching);
  counters.add(InputStage::kDecode, since(start) - fetching);
  counters.count_block(fetched, decoded);
  return all;
}

void ShardSet::load(int64_t first, int64_t count, BlockScratch& scratch, StageCounters& counters) const {
  scratch.block.reset(fields());
  std::vector<uint8_t> marks;
  const std::vector<Range> ranges = ranges_of(first, count, &marks);
  const int64_t decoded =
      load_ranges(ranges, scratch, counters,
                  [&](const ShardDecoder& decoder, std::span<const std::string_view> texts, int64_t from,
                      int64_t records) { decoder.decode(texts, from, records, scratch.block); });
  LOCKSTEP_CHECK(scratch.block.records == decoded, "{} decoded {} records of {}", format().name(),
                 scratch.block.records, decoded);
  if (decoded > count) keep_records(marks, scratch.block);
}

int64_t ShardSet::bytes_of(int64_t first, int64_t count) const {
  int64_t bytes = 0;
  for (const Range& range : ranges_of(first, count, nullptr))
    for_each_shard(range, [&](size_t shard, int64_t from, int64_t records) {
      for (const GranuleSpan& span : decoder(shard).spans(from, records)) bytes += span.bytes;
    });
  return bytes;
}

bool ShardSet::in_one_granule(int64_t a, int64_t b) const {
  const Manifest::Place of_a = manifest().locate(original(a)), of_b = manifest().locate(original(b));
  return of_a.shard == of_b.shard &&
         index(of_a.shard).granule_of(of_a.record) == index(of_b.shard).granule_of(of_b.record);
}

void ShardSet::expect(int64_t first, int64_t count) const {
  for (const Range& range : ranges_of(first, count, nullptr))
    for_each_shard(range, [&](size_t shard, int64_t from, int64_t records) {
      for (const GranuleSpan& span : decoder(shard).spans(from, records))
        opened_->bytes[shard]->expect(span.offset, span.bytes);
    });
}

std::string ShardSet::describe(int64_t record) const {
  const Manifest::Place place = manifest().locate(original(record));
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

}  // namespace lockstep
