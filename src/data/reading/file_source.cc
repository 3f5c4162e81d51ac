#include "data/reading/file_source.h"

#include <algorithm>
#include <bit>
#include <chrono>

#include "base/error.h"
#include "base/sha256.h"
#include "data/reading/row_writer.h"
#include "data/transform/transform.h"

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;

int64_t nanoseconds_since(Clock::time_point start) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count();
}

// Bytes of a budget that are taken while this lives.
class Held {
 public:
  Held(ByteBudget& memory, int64_t bytes) : memory_(memory), bytes_(bytes) { memory_.take(bytes_); }
  ~Held() { memory_.give(bytes_); }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

 private:
  ByteBudget& memory_;
  int64_t bytes_;
};

// Decodes a range of records and applies the transforms, in the memory of this thread.
ColumnBlock& transformed(const ShardSet& shards, const Transforms& transforms, BlockPlace place,
                         int64_t count, BlockScratch& scratch, StageCounters& counters) {
  shards.load(place.first, count, scratch, counters);
  const StageCounters::Timer timer(counters, InputStage::kTransform);
  try {
    for (const auto& transform : transforms) transform->apply(place, scratch.block);
  } catch (const BadValue& bad) {
    throw UserError("{}: {}", shards.describe(place.first + static_cast<int64_t>(bad.row())), bad.what());
  }
  return scratch.block;
}

bool has_weights(const std::vector<Column>& columns) {
  return std::any_of(columns.begin(), columns.end(),
                     [](const Column& column) { return column.name == kWeightsColumn; });
}

// What the records from `first` on count, times what transforms have found that they do.
void add_weights(const RecordWeights& weights, const ShardSet& shards, int64_t first, ColumnBlock& block) {
  const bool has = !block.columns.empty() && block.columns.back().name == kWeightsColumn;
  if (!has) {
    block.columns.push_back(make_column({kWeightsColumn, ValueType::kF32, 1}));
    block.columns.back().as<float>().assign(static_cast<size_t>(block.records), 1.0f);
  }
  std::vector<float>& all = block.columns.back().as<float>();
  for (int64_t r = 0; r < block.records; ++r)
    all[static_cast<size_t>(r)] *= weights.of(shards.original(first + r));
}

bool same_columns(const std::vector<BlockField>& fields, const std::vector<Column>& columns) {
  return std::equal(fields.begin(), fields.end(), columns.begin(), columns.end(),
                    [](const BlockField& field, const Column& column) {
                      return field.name == column.name && field.type == ValueType::kI32 &&
                             column.dtype == DType::kI32 && field.width == column.shape.numel();
                    });
}

// Of the memory, one part in so many is for batches.
constexpr int64_t kBatchShare = 8;
// Of the memory, what plans of records whose blocks are loaded ahead may take, and what a record takes there.
constexpr int64_t kPlannedShare = 16;
constexpr int64_t kPlannedBytes = 8;
// Some times the blocks that an order has open; a block that is told of twice costs a look.
constexpr size_t kTold = 8192;
// Records that are looked for under one lock.
constexpr size_t kFindAtOnce = 1024;

}  // namespace

FileSource::FileSource(std::shared_ptr<const ShardSet> shards, Transforms transforms,
                       FileSourceOptions options)
    : shards_(std::move(shards)),
      transforms_(std::move(transforms)),
      options_(std::move(options)),
      layout_(options_.columns),
      block_(options_.block > 0 ? options_.block : shards_->block_records()),
      varies_(std::any_of(transforms_.begin(), transforms_.end(),
                          [](const auto& transform) { return transform->random(); })),
      counters_(options_.budget) {
  std::vector<BlockField> fields = shards_->fields();
  size_t most_fields = fields.size();
  std::string text = "files 1\n" + shards_->fingerprint() + "\n";
  for (const auto& transform : transforms_) {
    fields = transform->output(fields);
    most_fields = std::max(most_fields, fields.size());
    text += transform->text() + "\n" + transform->fitted();
  }
  if (options_.weights) {
    if (!has_weights(options_.columns)) {
      options_.columns.push_back({kWeightsColumn, DType::kF32, {}});
      layout_ = RowLayout(options_.columns);
      fields.push_back({kWeightsColumn, ValueType::kF32, 1});
    }
    text += "weights " + options_.weights->text + "\n";
  }
  for (const Column& column : options_.columns) index_of(fields, column.name);
  if (transforms_.empty() && same_columns(fields, options_.columns)) compact_ = shards_->compact_rows();
  if (varies_) text += fmt::format("seed {}\n", options_.seed);
  fingerprint_ = sha256(text);

  LOCKSTEP_CHECK(std::has_single_bit(static_cast<uint64_t>(block_)), "blocks of {} records", block_);
  block_bits_ = std::countr_zero(static_cast<uint64_t>(block_));
  blocks_ = (size() + block_ - 1) / block_;

  // Beside the rows: the fetched bytes, and columns of which none takes more than a view per value.
  const auto decoded = static_cast<int64_t>(most_fields * sizeof(std::string_view));
  record_bytes_ = layout_.row_bytes() + decoded;
  loading_ = block_ * (kept_row_bytes() + decoded) + shards_->bytes_of(block_) +
             static_cast<int64_t>(sizeof(RowBlock));
  if (loading_ > options_.budget)
    throw UserError(
        "a block of {} records takes {} bytes to read, more than the {} bytes that reading may "
        "use; allow more",
        block_, loading_, options_.budget);
  // Blocks that are kept leave a share to batches, and to what the format keeps. What is another thing in the
  // next epoch is not worth keeping.
  format_keeps_ = shards_->format().use_memory(counters_.memory());
  const bool keep_all = !varies_ && memory_for(blocks_) <= options_.budget;
  cache_ = std::make_unique<BlockCache>(
      BlockCacheOptions{.memory = counters_.memory(), .loading = loading_, .keep_all = keep_all});
}

// Blocks and one that is being loaded, beside batches, and beside what the format keeps, which is a third of
// all at most.
int64_t FileSource::memory_for(int64_t blocks) const {
  const int64_t rows = blocks * (block_ * kept_row_bytes() + static_cast<int64_t>(sizeof(RowBlock)));
  const int64_t needed = rows + loading_;
  return format_keeps_ ? 2 * needed : needed + needed / (kBatchShare - 1) + 1;
}

int64_t FileSource::memory_to_mix(int64_t records) const {
  if (block_ == 1) return 0;  // used as soon as it is loaded
  return memory_for(std::min((records + block_ - 1) / block_, blocks_));
}

std::unique_ptr<RowBlock> FileSource::load(int64_t key) const {
  const int64_t first = key % blocks_ * block_;
  return std::make_unique<RowBlock>(rows_of(key / blocks_, first, std::min(block_, size() - first)));
}

RowBlock FileSource::rows_of(int64_t epoch, int64_t first, int64_t count) const {
  thread_local BlockScratch scratch;
  if (compact_ != nullptr) {
    const int64_t bytes = compact_->row_bytes();
    auto rows = std::make_unique_for_overwrite<std::byte[]>(static_cast<size_t>(count * bytes));
    shards_->load_compact(first, count, rows.get(), scratch, counters_);
    return {bytes, count, std::move(rows)};
  }
  ColumnBlock& columns =
      transformed(*shards_, transforms_, {options_.seed, epoch, first}, count, scratch, counters_);
  if (options_.weights) add_weights(*options_.weights, *shards_, first, columns);
  const StageCounters::Timer timer(counters_, InputStage::kTransform);
  return {layout_, options_.columns, columns, rows_memory_.get()};
}

RowBlock FileSource::rows(int64_t first, int64_t count) const {
  const Held held(*counters_.memory(), bytes_to_load(count));
  return rows_of(0, first, count);
}

std::span<BlockCache::Wanted> FileSource::wanted(std::span<const int64_t> records,
                                                 std::span<const int64_t> epochs) const {
  thread_local std::vector<BlockCache::Wanted> all;
  all.clear();
  for (uint32_t r = 0; r < records.size(); ++r) {
    if (records[r] == kNoRecord) continue;
    const int64_t epoch = varies_ && !epochs.empty() ? epochs[r] : 0;
    const int64_t block = records[r] >> block_bits_;
    all.push_back({epoch * blocks_ + block, static_cast<uint32_t>(records[r] - (block << block_bits_)), r});
  }
  return all;
}

template <typename Visit>
void FileSource::for_each_block(std::span<BlockCache::Wanted> records, const Visit& visit) {
  std::sort(records.begin(), records.end(),
            [](const auto& a, const auto& b) { return a.key != b.key ? a.key < b.key : a.place < b.place; });
  thread_local std::vector<uint32_t> in_block;
  for (size_t from = 0, to = 0; from < records.size(); from = to) {
    const int64_t key = records[from].key;
    in_block.clear();
    for (; to < records.size() && records[to].key == key; ++to) in_block.push_back(records[to].record);
    visit(key, records.subspan(from, to - from), in_block);
  }
}

void FileSource::fill_in_epochs(std::span<const int64_t> records, std::span<const int64_t> epochs,
                                Batch& batch) const {
  check_fill(records, batch);
  const auto start = Clock::now();
  const RowWriter writer(layout_, compact_, batch);
  for (uint32_t r = 0; r < records.size(); ++r)
    if (records[r] == kNoRecord) writer.clear(r);
  const std::span<BlockCache::Wanted> all = wanted(records, epochs);
  // Some at a time: others want the lock, and rows should still be in the processor's cache when it is their
  // turn to be copied.
  for (size_t at = 0; at < all.size(); at += kFindAtOnce) {
    const auto some = all.subspan(at, std::min(kFindAtOnce, all.size() - at));
    BlockCache::Found found(*cache_);
    cache_->find(some, found);
    writer.copy(some);
  }
  const auto missing = std::partition(all.begin(), all.end(), [](const auto& one) { return one.row; });
  const int64_t waited = load_missing({missing, all.end()}, writer);
  counters_.add(InputStage::kAssemble, nanoseconds_since(start) - waited);
  counters_.count_used(static_cast<int64_t>(records.size()));
}

int64_t FileSource::load_missing(std::span<BlockCache::Wanted> records, const RowWriter& writer) const {
  int64_t waited = 0;
  // Blocks that another thread is loading come last: threads that want the same ones share them out that way,
  // where otherwise each would wait for every block that the first of them loads.
  for (const bool others : {false, true}) {
    bool left = false;
    for_each_block(
        records, [&](int64_t key, std::span<BlockCache::Wanted> rows, std::span<const uint32_t> in_block) {
          if (!others && cache_->is_loading(key)) {
            left = true;
            return;
          }
          const auto block = cache_->get(key, in_block, [&](int64_t wanted) { return load(wanted); });
          waited += block.waited();
          for (BlockCache::Wanted& one : rows) one.row = block->row(one.record);
          writer.copy(rows);
        });
    if (!left) break;
    records = {std::partition(records.begin(), records.end(), [](const auto& one) { return one.row; }),
               records.end()};
  }
  return waited;
}

int64_t FileSource::loads_ahead() const {
  return cache_->has_room_ahead() ? options_.budget / kPlannedShare / kPlannedBytes : 0;
}

bool FileSource::load_ahead() const {
  return cache_->load_ahead([&](int64_t key) { return load(key); });
}

void FileSource::expect(std::span<const int64_t> records, std::span<const int64_t> epochs) const {
  std::vector<BlockCache::Need> needs;
  const std::span<BlockCache::Wanted> all = wanted(records, epochs);
  const std::lock_guard lock(told_mutex_);
  told_.resize(kTold, {-1, -1});
  for (const BlockCache::Wanted& one : all) {
    // The key of what varies has its epoch.
    const int64_t epoch = varies_ || epochs.empty() ? 0 : epochs[one.place];
    BlockCache::Need& told = told_[static_cast<size_t>(one.key) % kTold];
    if (told.key == one.key && told.epoch == epoch) continue;
    told = {one.key, epoch};
    needs.push_back(told);
  }
  cache_->will_need(needs);
}

void FileSource::expect_nothing() const {
  cache_->expect_nothing();
  const std::lock_guard lock(told_mutex_);
  told_.clear();
}

}  // namespace lockstep
