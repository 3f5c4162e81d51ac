#include "data/pipeline/file_source.h"

#include <algorithm>
#include <bit>
#include <chrono>

#include "base/error.h"
#include "base/sha256.h"
#include "data/order/epoch_order.h"
#include "data/pipeline/row_writer.h"
#include "data/transform/chain.h"

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

// What the records from `first` on count.
void add_weights(const RecordWeights& weights, const ShardSet& shards, int64_t first, ColumnBlock& block) {
  BlockColumn column = make_column({kWeightsColumn, ValueType::kF32, 1});
  for (int64_t r = 0; r < block.records; ++r)
    column.as<float>().push_back(weights.of(shards.original(first + r)));
  block.columns.push_back(std::move(column));
}

bool same_columns(const std::vector<BlockField>& fields, const std::vector<Column>& columns) {
  return std::equal(fields.begin(), fields.end(), columns.begin(), columns.end(),
                    [](const BlockField& field, const Column& column) {
                      return field.name == column.name && field.type == ValueType::kI32 &&
                             column.dtype == DType::kI32 && field.width == column.shape.numel();
                    });
}

// Of the memory, what plans of records whose blocks are loaded ahead may take, and what a record takes there.
constexpr int64_t kPlannedShare = 16;
constexpr int64_t kPlannedBytes = 8;
// Some times the blocks that an order has open; a block that is told of twice costs a look.
constexpr size_t kTold = 8192;
// Where blocks are unpacked, not parsed, loading one takes much longer than some records of it: two threads
// that begin with the first two batches do without.
constexpr int kApart = 2;
// A run is loaded at once where that takes at most such a part of the memory, otherwise a part of it.
constexpr int64_t kLoadingShare = 16;
// Records that are looked for under one lock.
constexpr size_t kFindAtOnce = 1024;

// Ascending, each once.
std::vector<uint32_t> distinct(std::vector<uint32_t> numbers) {
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  return numbers;
}

}  // namespace

FileSource::FileSource(std::shared_ptr<const ShardSet> shards, Transforms transforms,
                       FileSourceOptions options)
    : shards_(std::move(shards)),
      transforms_(std::move(transforms)),
      options_(std::move(options)),
      layout_(options_.columns),
      order_block_(options_.block > 0 ? options_.block : shards_->block_records()),
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
    options_.columns.push_back({kWeightsColumn, DType::kF32, {}});
    layout_ = RowLayout(options_.columns);
    fields.push_back({kWeightsColumn, ValueType::kF32, 1});
    text += "weights " + options_.weights->text + "\n";
  }
  for (const Column& column : options_.columns) index_of(fields, column.name);
  if (transforms_.empty() && same_columns(fields, options_.columns)) compact_ = shards_->compact_rows();
  if (transforms_.size() == 1 && !options_.weights && shards_->encodes_rows())
    encoding_ = transforms_[0]->row_encoding();
  if (varies_) text += fmt::format("seed {}\n", options_.seed);
  fingerprint_ = sha256(text);

  const OrderShape shape{.block = order_block_, .window = shards_->order_window()};
  block_ = order_block_ * std::min(shape.run(), options_.lanes);
  while (block_ > order_block_ && bytes_while_loading(block_, most_fields) > options_.budget / kLoadingShare)
    block_ /= 2;
  LOCKSTEP_CHECK(std::has_single_bit(static_cast<uint64_t>(block_)), "blocks of {} records", block_);
  block_bits_ = std::countr_zero(static_cast<uint64_t>(block_));
  blocks_ = (size() + block_ - 1) / block_;

  const int64_t row_bytes = kept_row_bytes();
  const int64_t rows = block_ * row_bytes + static_cast<int64_t>(sizeof(RowBlock));
  record_bytes_ = layout_.row_bytes() + static_cast<int64_t>(most_fields * sizeof(std::string_view));
  const int64_t loading = bytes_while_loading(block_, most_fields);
  if (loading > options_.budget)
    throw UserError(
        "a block of {} records takes {} bytes to read, more than the {} bytes that reading may "
        "use; allow more",
        block_, loading, options_.budget);
  // Blocks that are kept leave a share to batches, and to what the format keeps. What is another thing in the
  // next epoch is not worth keeping.
  const int64_t of_format = shards_->format().use_memory(counters_.memory());
  const int64_t others = options_.budget / 8 + of_format;
  const bool keep_all = !varies_ && blocks_ * rows + loading + others <= options_.budget;
  cache_ = std::make_unique<BlockCache>(BlockCacheOptions{.memory = counters_.memory(),
                                                          .loading = loading,
                                                          .keep_all = keep_all ? blocks_ : 0,
                                                          .row_bytes = row_bytes,
                                                          .others = of_format > 0 ? others : INT64_MAX,
                                                          .apart = encoding_ != nullptr ? kApart : 1});
}

// Beside the rows: the fetched bytes, and columns of which none takes more than a view per value.
int64_t FileSource::bytes_while_loading(int64_t records, size_t most_fields) const {
  const size_t decoded =
      encoding_ != nullptr ? kPlacesTogether * kPlaceBytes : most_fields * sizeof(std::string_view);
  return records * (kept_row_bytes() + static_cast<int64_t>(decoded)) + shards_->bytes_of(records) +
         static_cast<int64_t>(sizeof(RowBlock));
}

std::unique_ptr<RowBlock> FileSource::load(int64_t key, std::span<const uint32_t> only) const {
  {
    const std::lock_guard lock(hinted_mutex_);
    hinted_.erase(key);
  }
  const int64_t first = key % blocks_ * block_;
  return std::make_unique<RowBlock>(rows_of(key / blocks_, first, std::min(block_, size() - first), only));
}

RowBlock FileSource::rows_of(int64_t epoch, int64_t first, int64_t count,
                             std::span<const uint32_t> only) const {
  thread_local BlockScratch scratch;
  if (compact_ != nullptr) {
    const int64_t bytes = compact_->row_bytes();
    auto rows = std::make_unique_for_overwrite<std::byte[]>(static_cast<size_t>(count * bytes));
    shards_->load_compact(first, count, rows.get(), scratch, counters_);
    return {bytes, count, std::move(rows), only};
  }
  if (encoding_ != nullptr)
    if (auto rows = encoded_rows(first, count, only)) return std::move(*rows);
  ColumnBlock& columns =
      transformed(*shards_, transforms_, {options_.seed, epoch, first}, count, scratch, counters_);
  if (options_.weights) add_weights(*options_.weights, *shards_, first, columns);
  const StageCounters::Timer timer(counters_, InputStage::kTransform);
  return {layout_, options_.columns, columns, only, rows_memory_.get()};
}

std::optional<RowBlock> FileSource::encoded_rows(int64_t first, int64_t count,
                                                 std::span<const uint32_t> only) const {
  const auto held = only.empty() ? count : static_cast<int64_t>(only.size());
  BigBytes rows = rows_memory_->take(static_cast<size_t>(held * layout_.row_bytes()));
  if (!shards_->load_rows(*encoding_, first, count, only, rows.data(), counters_)) return {};
  return RowBlock::of_rows(layout_.row_bytes(), count, std::move(rows), only);
}

RowBlock FileSource::rows(int64_t first, int64_t count) const {
  const Held held(*counters_.memory(), bytes_to_load(count));
  return rows_of(0, first, count, {});
}

// A granule is about a sixteenth of a block of text; pages and compressed blocks are more of it, or all.
bool FileSource::is_little(int64_t key, std::span<const uint32_t> in_block) const {
  if (static_cast<int64_t>(in_block.size()) * 8 > block_) return false;
  if (encoding_ != nullptr) return true;  // unpacking is what it takes then, not reading
  const int64_t first = key % blocks_ * block_;
  int64_t bytes = 0;
  for (const uint32_t record : in_block) bytes += shards_->bytes_of(first + record, 1);
  return bytes * 4 <= shards_->bytes_of(first, std::min(block_, size() - first));
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
void FileSource::for_each_block(std::span<BlockCache::Wanted> records, const Visit& visit,
                                bool backwards) const {
  std::sort(records.begin(), records.end(),
            [](const auto& a, const auto& b) { return a.key != b.key ? a.key < b.key : a.place < b.place; });
  thread_local std::vector<uint32_t> in_block;
  size_t begin = 0, end = records.size();  // of what is left
  while (begin < end) {
    const int64_t key = records[backwards ? end - 1 : begin].key;
    size_t from = backwards ? end - 1 : begin, to = from + 1;
    while (from > begin && records[from - 1].key == key) --from;
    while (to < end && records[to].key == key) ++to;
    in_block.clear();
    for (size_t at = from; at < to; ++at) in_block.push_back(records[at].record);
    visit(key, records.subspan(from, to - from), in_block);
    (backwards ? end : begin) = backwards ? from : to;
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

void FileSource::copy_apart(std::span<BlockCache::Wanted> records, const RowWriter& writer) const {
  const int64_t key = records.front().key;
  const int64_t first = key % blocks_ * block_;
  if (encoding_ == nullptr) {
    for (BlockCache::Wanted& one : records) {
      const int64_t record = first + one.record;
      const Held held(*counters_.memory(), shards_->bytes_of(record, 1) + record_bytes_);
      const RowBlock alone = rows_of(key / blocks_, record, 1, {});
      one.row = alone.row(0);
      writer.copy({&one, 1});
    }
    return;
  }
  const auto from_first = [&](const BlockCache::Wanted& one) {
    return static_cast<uint32_t>((one.key - key) * block_ + one.record);
  };
  std::vector<uint32_t> only(records.size());
  std::transform(records.begin(), records.end(), only.begin(), from_first);
  only = distinct(std::move(only));
  const Held held(*counters_.memory(),
                  shards_->bytes_of(block_) + static_cast<int64_t>(only.size()) * record_bytes_);
  const int64_t count = std::min((records.back().key - key + 1) * block_, size() - first);
  if (const auto some = encoded_rows(first, count, only)) {
    for (BlockCache::Wanted& one : records) one.row = some->row(from_first(one));
    writer.copy(records);
    return;
  }
  for_each_block(records,
                 [&](int64_t block, std::span<BlockCache::Wanted> rows, std::span<const uint32_t> in_block) {
                   const int64_t begin = block % blocks_ * block_;
                   const RowBlock some = rows_of(block / blocks_, begin, std::min(block_, size() - begin),
                                                 distinct({in_block.begin(), in_block.end()}));
                   for (BlockCache::Wanted& one : rows) one.row = some.row(one.record);
                   writer.copy(rows);
                 });
}

std::span<BlockCache::Wanted> FileSource::read_apart(std::span<BlockCache::Wanted> records,
                                                     const RowWriter& writer) const {
  std::vector<std::span<BlockCache::Wanted>> tasks;
  std::unique_lock deciding(apart_mutex_);
  for_each_block(records,
                 [&](int64_t key, std::span<BlockCache::Wanted> rows, std::span<const uint32_t> in_block) {
                   if (!cache_->read_apart(key, in_block, [&] { return is_little(key, in_block); })) return;
                   if (!tasks.empty() && share_unpacking(tasks.back(), rows))
                     tasks.back() = {tasks.back().data(), tasks.back().size() + rows.size()};
                   else
                     tasks.push_back(rows);
                 });
  deciding.unlock();
  // Somebody waits for the batch that was begun first, which also had the first choice.
  apart_.help();
  if (tasks.empty()) return records;
  apart_.run(tasks.size(), [&](size_t i) { copy_apart(tasks[i], writer); });
  return {std::partition(records.begin(), records.end(), [](const auto& one) { return one.row; }),
          records.end()};
}

bool FileSource::share_unpacking(std::span<const BlockCache::Wanted> some,
                                 std::span<const BlockCache::Wanted> next) const {
  const int64_t a = some.front().key, b = next.front().key;
  return encoding_ != nullptr && some.data() + some.size() == next.data() && a / blocks_ == b / blocks_ &&
         shards_->in_one_granule(a % blocks_ * block_, b % blocks_ * block_);
}

int64_t FileSource::load_missing(std::span<BlockCache::Wanted> records, const RowWriter& writer) const {
  int64_t waited = 0;
  if (cache_->reads_apart()) {
    const auto begin = Clock::now();
    records = read_apart(records, writer);
    waited += nanoseconds_since(begin);
  }
  // Two threads that want the same blocks begin at different ends: near blocks share what is unpacked for
  // them.
  const bool backwards = encoding_ != nullptr && turn_++ % 2 == 1;
  // Blocks that another thread is loading come last: threads that want the same ones share them out that way,
  // where otherwise each would wait for every block that the first of them loads.
  for (const bool others : {false, true}) {
    bool left = false;
    for_each_block(
        records,
        [&](int64_t key, std::span<BlockCache::Wanted> rows, std::span<const uint32_t> in_block) {
          if (!others && cache_->is_loading(key)) {
            left = true;
            return;
          }
          const auto block =
              cache_->get(key, in_block, [&](std::span<const uint32_t> only) { return load(key, only); });
          waited += block.waited();
          for (BlockCache::Wanted& one : rows) one.row = block->row(one.record);
          writer.copy(rows);
        },
        backwards);
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
  return cache_->load_ahead([&](int64_t key, std::span<const uint32_t> only) { return load(key, only); });
}

void FileSource::tell_blocks(std::span<const BlockCache::Wanted> records,
                             std::span<const int64_t> epochs) const {
  std::vector<BlockCache::Need> needs;
  const std::lock_guard lock(told_mutex_);
  told_.resize(kTold, {-1, -1});
  for (const BlockCache::Wanted& one : records) {
    // The key of what varies has its epoch.
    const int64_t epoch = varies_ || epochs.empty() ? 0 : epochs[one.place];
    BlockCache::Need& told = told_[static_cast<size_t>(one.key) % kTold];
    if (told.key == one.key && told.epoch == epoch) continue;
    told = {one.key, epoch};
    needs.push_back(told);
  }
  cache_->will_need(needs);
}

void FileSource::expect(std::span<const int64_t> records, std::span<const int64_t> epochs, bool hint) const {
  const std::span<BlockCache::Wanted> all = wanted(records, epochs);
  tell_blocks(all, epochs);
  if (!hint && cache_->looks_ahead() == 0) return;
  for_each_block(all, [&](int64_t key, std::span<BlockCache::Wanted>, std::span<const uint32_t> in_block) {
    if (cache_->looks_ahead() > 0) cache_->expect(key, in_block);
    if (!hint || cache_->holds(key)) return;
    {
      const std::lock_guard lock(hinted_mutex_);
      if (!hinted_.insert(key).second) return;
    }
    const int64_t first = key % blocks_ * block_;
    shards_->expect(first, std::min(block_, size() - first));
  });
}

void FileSource::expect_nothing() const {
  cache_->expect_nothing();
  {
    const std::lock_guard lock(told_mutex_);
    told_.clear();
  }
  const std::lock_guard lock(hinted_mutex_);
  hinted_.clear();
}

}  // namespace lockstep
