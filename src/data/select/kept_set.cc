#include "data/select/kept_set.h"

#include <algorithm>
#include <atomic>
#include <filesystem>

#include "base/error.h"
#include "base/log.h"
#include "base/sha256.h"
#include "base/thread_pool.h"
#include "data/bytes/kept_file.h"
#include "data/transform/transform.h"

namespace lockstep {
namespace {

std::optional<RecordSet> read_set(const std::filesystem::path& path, int64_t records) {
  const auto bytes = read_kept(path.string());
  if (!bytes) return {};
  try {
    return RecordSet::from_bytes(*bytes, records);
  } catch (const UserError& error) {
    log_warn("{}: {}; the records are looked through again", path.string(), error.what());
    return {};
  }
}

}  // namespace

RecordTest filter_test(const Filter& filter, bool lenient) {
  return {fmt::format("filter 1 {}{}", lenient ? "lenient " : "", filter.text()), filter.columns(),
          [filter, lenient](const ColumnBlock& block) { return filter.matches(block, lenient); }};
}

RecordSet marked_records(const ShardSet& shards, const RecordTest& test, int threads,
                         const IndexProgress& progress) {
  const int64_t records = shards.records();
  // Whole words of the bits, so that no two threads write to the same one.
  const int64_t block = (std::max<int64_t>(shards.manifest().block_records(), 1) + 63) / 64 * 64;
  const int64_t blocks = (records + block - 1) / block;
  std::vector<uint64_t> bits(static_cast<size_t>((records + 63) / 64));
  std::atomic<int64_t> done = 0;
  const auto report = [&] {
    const double share = static_cast<double>(++done) / static_cast<double>(blocks);
    const int64_t bytes = shards.manifest().bytes();
    if (progress) progress(static_cast<int64_t>(share * static_cast<double>(bytes)), bytes);
  };
  ThreadPool pool(threads);
  StageCounters counters;
  pool.run(blocks, [&](int64_t task) {
    thread_local BlockScratch scratch;
    const int64_t first = task * block;
    shards.load(first, std::min(block, records - first), scratch, counters);
    std::vector<uint8_t> marks;
    try {
      marks = test.marks(scratch.block);
    } catch (const BadValue& bad) {
      throw UserError("{}: {}", shards.describe(first + static_cast<int64_t>(bad.row())), bad.what());
    }
    for (size_t r = 0; r < marks.size(); ++r) {
      const auto record = static_cast<uint64_t>(first) + r;
      bits[record / 64] |= uint64_t{marks[r]} << (record % 64);
    }
    report();
  });
  return {std::move(bits), records};
}

std::shared_ptr<const RecordSet> kept_set(const ShardSet& all, const RecordTest& test,
                                          const OpenColumns& open, const KeptSetOptions& options) {
  const int64_t records = all.manifest().records();
  const auto find = [&] {
    return std::make_shared<RecordSet>(
        marked_records(*open(test.columns), test, options.threads, options.progress));
  };
  if (options.folder.empty()) return find();
  const std::string key =
      sha256(fmt::format("set 4\n{} {}\n{}\n{}\n{}\n", all.format().name(), all.format().version(),
                         options.index, all.manifest().fingerprint(), test.text));
  const std::filesystem::path path =
      std::filesystem::path(options.folder) / fmt::format("records-{}.bits", key.substr(0, 16));
  if (auto set = read_set(path, records)) return std::make_shared<RecordSet>(std::move(*set));
  if (!options.writes) return find();
  const FileLock lock(path.string() + ".lock");
  if (auto set = read_set(path, records)) return std::make_shared<RecordSet>(std::move(*set));
  const std::shared_ptr<RecordSet> set = find();
  write_kept(path.string(), set->bytes());
  return set;
}

}  // namespace lockstep
