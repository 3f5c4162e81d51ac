#include "data/pipeline/shard_set.h"

#include <algorithm>
#include <atomic>

#include "base/error.h"
#include "base/sha256.h"
#include "base/thread_pool.h"
#include "data/format/compressed_source.h"
#include "data/index/sidecar.h"

namespace lockstep {
namespace {

std::vector<std::unique_ptr<ByteSource>> open_all(const std::vector<std::string>& files,
                                                  const std::string& folder) {
  std::vector<std::unique_ptr<ByteSource>> shards;
  for (const std::string& path : files) shards.push_back(open_shard(path, folder));
  return shards;
}

}  // namespace

ShardSet::ShardSet(std::unique_ptr<Format> format, const std::vector<std::string>& files,
                   const ShardSetOptions& options)
    : ShardSet(std::move(format), open_all(files, options.index_folder), options) {}

ShardSet::ShardSet(std::unique_ptr<Format> format, std::vector<std::unique_ptr<ByteSource>> shards,
                   const ShardSetOptions& options)
    : format_(std::move(format)), bytes_(std::move(shards)) {
  if (bytes_.empty()) throw UserError("no data files are given");
  fields_ = format_->fields(*bytes_[0]);
  index_shards(options);
  std::vector<ManifestShard> entries;
  for (size_t i = 0; i < bytes_.size(); ++i) {
    decoders_.push_back(format_->open(*bytes_[i], indexes_[i]));
    entries.push_back({bytes_[i]->name(), bytes_[i]->size(), indexes_[i].records, indexes_[i].content});
  }
  manifest_ = std::make_unique<Manifest>(std::move(entries));
  check_bad(options);
}

void ShardSet::index_shards(const ShardSetOptions& options) {
  int64_t all = 0;
  for (const auto& shard : bytes_) all += shard->size();
  std::atomic<int64_t> done = 0;
  const Format::Progress progress = [&](int64_t bytes) {
    const int64_t now = done += bytes;
    if (options.progress) options.progress(now, all);
  };
  indexes_.resize(bytes_.size());
  ThreadPool pool(std::clamp<int>(options.threads, 1, static_cast<int>(bytes_.size())));
  pool.run(static_cast<int64_t>(bytes_.size()), [&](int64_t task) {
    const auto i = static_cast<size_t>(task);
    const bool text = bytes_[i]->stamp().ends_with(" text");
    if (text) {
      indexes_[i] = build_index(*format_, *bytes_[i], progress);
      return;
    }
    IndexResult result = index_of_file(*format_, *bytes_[i], options.index_folder, progress);
    if (!result.built) progress(bytes_[i]->size());
    indexes_[i] = std::move(result.index);
  });
}

std::vector<std::string> ShardSet::bad_records() const {
  std::vector<std::string> all;
  for (size_t i = 0; i < bytes_.size(); ++i)
    for (const BadRecord& record : indexes_[i].bad)
      all.push_back(fmt::format("{} at byte {}: {}", bytes_[i]->name(), record.offset, record.reason));
  return all;
}

void ShardSet::check_bad(const ShardSetOptions& options) const {
  int64_t bad = 0;
  for (const ShardIndex& index : indexes_)
    for (const BadRecord& record : index.bad) bad += record.records;
  const int64_t records = manifest_->records() + bad;
  if (static_cast<double>(bad) <= options.most_bad * static_cast<double>(records)) return;
  throw UserError("{} of {} records cannot be used, more than the share of {} that is allowed; the first: {}",
                  bad, records, options.most_bad, bad_records()[0]);
}

template <typename Part>
void ShardSet::for_each_shard(int64_t first, int64_t count, const Part& part) const {
  while (count > 0) {
    const Manifest::Place place = manifest_->locate(first);
    const int64_t here =
        records_together(indexes_[place.shard], place.record,
                         std::min(count, manifest_->shards()[place.shard].records - place.record));
    part(place.shard, place.record, here);
    first += here;
    count -= here;
  }
}

void ShardSet::load(int64_t first, int64_t count, BlockScratch& scratch, StageCounters& counters) const {
  scratch.block.reset(fields_);
  size_t buffers = 0;
  int64_t fetched = 0;
  for_each_shard(first, count, [&](size_t shard, int64_t from, int64_t records) {
    const ShardDecoder& decoder = *decoders_[shard];
    std::vector<std::string_view> texts;
    {
      const StageCounters::Timer timer(counters, InputStage::kFetch);
      for (const GranuleSpan& span : decoder.spans(from, records)) {
        if (buffers == scratch.buffers_.size()) scratch.buffers_.push_back(std::make_unique<std::string>());
        std::string& buffer = *scratch.buffers_[buffers++];
        const auto bytes = static_cast<size_t>(span.bytes);
        if (buffer.size() < bytes + ShardDecoder::kPadding) buffer.resize(bytes + ShardDecoder::kPadding);
        bytes_[shard]->read(span.offset, std::span(buffer).first(bytes));
        std::fill_n(buffer.data() + bytes, ShardDecoder::kPadding, '\0');
        texts.emplace_back(buffer.data(), bytes);
        fetched += span.bytes;
      }
    }
    const StageCounters::Timer timer(counters, InputStage::kDecode);
    decoder.decode(texts, from, records, scratch.block);
  });
  counters.count_block(fetched);
  LOCKSTEP_CHECK(scratch.block.records == count, "{} decoded {} records of {}", format_->name(),
                 scratch.block.records, count);
}

void ShardSet::expect(int64_t first, int64_t count) const {
  for_each_shard(first, count, [&](size_t shard, int64_t from, int64_t records) {
    for (const GranuleSpan& span : decoders_[shard]->spans(from, records))
      bytes_[shard]->expect(span.offset, span.bytes);
  });
}

std::string ShardSet::describe(int64_t record) const {
  const Manifest::Place place = manifest_->locate(record);
  return decoders_[place.shard]->describe(place.record);
}

std::string ShardSet::fingerprint() const {
  return sha256(fmt::format("shards 1\n{} {}\n{}{}\n", format_->name(), format_->version(),
                            format_->options().text(), manifest_->fingerprint()));
}

}  // namespace lockstep
