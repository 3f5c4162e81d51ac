#include "data/cache/row_cache.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>

#include "base/error.h"
#include "base/log.h"
#include "base/new_file.h"
#include "base/number_text.h"
#include "base/sha256.h"
#include "base/thread_pool.h"
#include "data/bytes/kept_file.h"
#include "data/cache/row_file.h"
#include "data/shards/sidecar.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kEnding = ".rows";
constexpr size_t kKeyDigits = 12;  // in the name of a file
// Blocks that are written together, for each thread: short shards are then written several at a time.
constexpr int64_t kBlocksAThread = 4;

std::string lock_path(const std::string& path) { return path + ".lock"; }
std::string folder_of(const std::string& path) { return fs::path(path).parent_path().string(); }

// The file of one shard, whether it is there or not.
struct Planned {
  int64_t first = 0;
  RowFileHeader header;
  std::string path;
  std::string stem;  // what the names of all files of rows of this shard begin with
};

std::vector<Planned> plan(const FileSource& source, const RowCacheOptions& options) {
  const ShardSet& shards = source.shards();
  const std::vector<DataShard>& all = shards.manifest().shards();
  const RowLayout layout(source.columns());
  const std::vector<std::string> keys = row_cache_keys(source);
  std::vector<Planned> planned;
  for (size_t shard = 0; shard < all.size(); ++shard) {
    const int64_t begin = shards.manifest().first_of(shard);
    const int64_t first = shards.records_before(begin);
    const int64_t records = shards.records_before(begin + all[shard].records) - first;
    if (records == 0) continue;
    planned.push_back({first,
                       {keys[shard], sha256(all[shard].content), records, layout.row_bytes()},
                       kept_path(all[shard].name, options.folder,
                                 std::string_view(keys[shard]).substr(0, kKeyDigits), kEnding),
                       kept_stem(all[shard].name, options.folder)});
  }
  return planned;
}

// Null: it is not there, or is not what it should be, of which the log is told.
std::unique_ptr<RowFile> open_kept(const Planned& planned, bool logs = true) {
  if (!fs::exists(planned.path)) return nullptr;
  try {
    auto file = std::make_unique<RowFile>(open_file(planned.path));
    if (file->header() == planned.header) return file;
    if (logs) log_warn("{}: holds the rows of something else; it is made again", planned.path);
  } catch (const UserError& error) {
    if (logs) log_warn("{}; it is made again", error.what());
  }
  return nullptr;
}

int64_t free_bytes_of(const RowCacheOptions& options, const std::string& folder) {
  if (options.free_bytes) return options.free_bytes(folder);
  std::error_code failure;
  const fs::space_info space = fs::space(folder, failure);
  return failure ? INT64_MAX : static_cast<int64_t>(space.available);
}

// Files of rows that are not complete, by the path that they are to have: another process writes them, or was
// killed while it did.
using Partials = std::multimap<std::string, std::string>;

Partials partials_in(const std::set<std::string>& folders) {
  Partials partials;
  std::error_code failure;
  for (const std::string& folder : folders)
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, failure))
      if (std::string path = finished_path(entry.path().string()); path.ends_with(kEnding))
        partials.emplace(std::move(path), entry.path().string());
  return partials;
}

// What they have already taken.
int64_t taken_for(const std::string& path, const Partials& partials) {
  int64_t taken = 0;
  for (auto [at, end] = partials.equal_range(path); at != end; ++at) {
    struct stat found {};
    if (stat(at->second.c_str(), &found) == 0) taken += found.st_blocks * 512;
  }
  return taken;
}

// Of processes that were killed: whoever calls this holds the lock, which all writers of the path do.
void remove_partials(const std::string& path, const Partials& partials) {
  std::error_code failure;
  for (auto [at, end] = partials.equal_range(path); at != end; ++at) fs::remove(at->second, failure);
}

void require_room(const std::vector<const Planned*>& missing, const Partials& partials,
                  const RowCacheOptions& options) {
  std::map<std::string, int64_t> needed;
  for (const Planned* one : missing)
    needed[folder_of(one->path)] +=
        std::max<int64_t>(0, one->header.file_bytes() - taken_for(one->path, partials));
  for (const auto& [folder, bytes] : needed) {
    std::error_code failure;
    fs::create_directories(folder, failure);
    const int64_t free = free_bytes_of(options, folder);
    if (bytes <= free) continue;
    throw UserError(
        "data.cache: the rows need {} in {}, which can take {}; make room, name another folder as "
        "data.cache_folder, or remove data.cache",
        bytes_text(bytes), folder, bytes_text(free));
  }
}

// What was kept of these shards while they had other contents, complete or not.
void remove_outdated(const std::vector<const Planned*>& missing) {
  std::map<std::string, std::map<std::string, const Planned*>> folders;  // by stem
  for (const Planned* one : missing) folders[folder_of(one->path)][one->stem] = one;
  for (const auto& [folder, stems] : folders) {
    std::error_code failure;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, failure)) {
      const std::string name = entry.path().filename().string();
      const size_t end = name.rfind(kEnding);
      if (end == std::string::npos || end < kKeyDigits) continue;
      const auto found = stems.find(name.substr(0, end - kKeyDigits));
      if (found == stems.end()) continue;
      const std::string path = (entry.path().parent_path() / name.substr(0, end + kEnding.size())).string();
      if (path == found->second->path) continue;
      if (finished_path(entry.path().string()) == path) {
        if (const FileLock lock(lock_path(path), FileLock::Wait::kNo); lock.excludes())
          fs::remove(entry, failure);
        continue;
      }
      if (entry.path() != path) continue;
      try {
        if (read_row_header(*open_file(path)).content == found->second->header.content) continue;
        log_info("{}: its shard has changed; removed", path);
        fs::remove(path, failure);
        fs::remove(lock_path(path), failure);
      } catch (const UserError&) {
        continue;  // not known to be ours
      }
    }
  }
}

// Shards that this process writes at the same time.
class Writing {
 public:
  Writing(const FileSource& source, ThreadPool& pool, std::function<void(int64_t)> progress)
      : source_(source), pool_(pool), progress_(std::move(progress)) {}

  // Whoever holds the lock writes the shard.
  void add(const Planned& planned, std::unique_ptr<FileLock> lock) {
    shards_.push_back(
        {planned.first, std::move(lock), std::make_unique<RowFileWriter>(planned.path, planned.header)});
    const int64_t step = std::max(source_.block_records(), planned.header.chunk_rows());
    for (int64_t at = 0; at < planned.header.records; at += step)
      blocks_.push_back({shards_.size() - 1, at, std::min(step, planned.header.records - at)});
  }
  bool full() const { return static_cast<int64_t>(blocks_.size()) >= kBlocksAThread * pool_.threads(); }

  void write() {
    pool_.run(static_cast<int64_t>(blocks_.size()), [&](int64_t task) {
      const Block& block = blocks_[static_cast<size_t>(task)];
      const Shard& shard = shards_[block.shard];
      const RowBlock rows = source_.rows(shard.first + block.at, block.count);
      const auto bytes = static_cast<size_t>(block.count * shard.writer->header().row_bytes);
      shard.writer->write(block.at, {rows.row(0), bytes});
      progress_(static_cast<int64_t>(bytes));
    });
    for (const Shard& shard : shards_) shard.writer->finish();
    shards_.clear();
    blocks_.clear();
  }

 private:
  struct Shard {
    int64_t first;
    std::unique_ptr<FileLock> lock;  // until the writer has given the file its name, or removed it
    std::unique_ptr<RowFileWriter> writer;
  };
  struct Block {
    size_t shard;
    int64_t at, count;  // rows of the shard
  };

  const FileSource& source_;
  ThreadPool& pool_;
  std::function<void(int64_t)> progress_;
  std::vector<Shard> shards_;
  std::vector<Block> blocks_;
};

int threads_for(const FileSource& source, const RowCacheOptions& options) {
  const int64_t each = source.bytes_to_load(source.block_records());
  return static_cast<int>(
      std::clamp<int64_t>(source.options().budget / std::max<int64_t>(each, 1), 1, options.threads));
}

// First those that nobody else writes; then those that others wrote meanwhile, or failed to.
void write_missing(const FileSource& source, const std::vector<const Planned*>& missing,
                   const Partials& partials, const RowCacheOptions& options) {
  int64_t all = 0;
  for (const Planned* one : missing) all += one->header.file_bytes();
  log_info("data.cache: writing the rows of {} shards, {}, to {}", missing.size(), bytes_text(all),
           folder_of(missing[0]->path));
  const auto start = std::chrono::steady_clock::now();
  std::atomic<int64_t> done = 0;
  const auto progress = [&](int64_t bytes) {
    const int64_t now = done += bytes;
    if (options.progress) options.progress(now, all);
  };
  ThreadPool pool(threads_for(source, options));
  std::vector<const Planned*> others;
  for (const auto wait : {FileLock::Wait::kNo, FileLock::Wait::kYes}) {
    Writing writing(source, pool, progress);
    for (const Planned* one : wait == FileLock::Wait::kNo ? missing : others) {
      auto lock = std::make_unique<FileLock>(lock_path(one->path), wait);
      if (!lock->held()) {
        others.push_back(one);
        continue;
      }
      if (open_kept(*one, false)) {
        progress(one->header.file_bytes());
        continue;
      }
      if (lock->excludes()) remove_partials(one->path, partials);
      writing.add(*one, std::move(lock));
      // Who waits for others must hold nothing that they wait for.
      if (writing.full() || wait == FileLock::Wait::kYes) writing.write();
    }
    writing.write();
    if (wait == FileLock::Wait::kNo && !others.empty())
      log_info("data.cache: waiting for other processes that write {} shards", others.size());
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  log_info("data.cache: the rows are there after {:.1f} s", seconds.count());
}

}  // namespace

std::vector<CachedShard> open_row_cache(const FileSource& source, const RowCacheOptions& options) {
  const std::vector<Planned> planned = plan(source, options);
  std::vector<CachedShard> shards;
  std::vector<const Planned*> missing;
  for (const Planned& one : planned) {
    shards.push_back({one.first, open_kept(one)});
    if (!shards.back().rows) missing.push_back(&one);
  }
  if (missing.empty()) return shards;
  std::set<std::string> folders;
  for (const Planned* one : missing) folders.insert(folder_of(one->path));
  const Partials partials = partials_in(folders);
  require_room(missing, partials, options);
  remove_outdated(missing);
  write_missing(source, missing, partials, options);
  for (size_t i = 0; i < planned.size(); ++i) {
    if (shards[i].rows) continue;
    shards[i].rows = open_kept(planned[i]);
    if (!shards[i].rows) throw UserError("{} was written, but is gone or damaged", planned[i].path);
  }
  return shards;
}

namespace {

// Of which of the records [first, first + count) belong to a set.
std::string hash_of(const RecordSet& set, int64_t first, int64_t count) {
  ContentHash hash;
  for (int64_t at = 0; at < count; at += 64) {
    uint64_t word = set.word(first + at);
    if (count - at < 64) word &= (uint64_t{1} << (count - at)) - 1;
    char bytes[sizeof word];
    std::memcpy(bytes, &word, sizeof word);
    hash.update({bytes, sizeof bytes});
  }
  return hash.finish();
}

// How records become rows, whichever they are.
std::string encoding_of(const FileSource& source) {
  const Format& format = source.shards().format();
  std::string text = fmt::format("{} {}\n{}", format.name(), format.version(), format.options().text());
  for (const auto& transform : source.transforms()) text += transform->text() + "\n" + transform->fitted();
  for (const Column& column : source.columns())
    text += fmt::format("column {} {} {}\n", column.name, name_of(column.dtype), to_string(column.shape));
  return sha256(text);
}

std::string key_of(const FileSource& source, const std::string& encoding, size_t shard) {
  const ShardSet& shards = source.shards();
  const ShardIndex& index = shards.index(shard);
  const int64_t first = shards.manifest().first_of(shard);
  std::string text = fmt::format("rows 2\n{}\n{} {}\n", encoding, index.content, index.records);
  for (const BadRecord& bad : index.bad) text += fmt::format("bad {} {}\n", bad.offset, bad.records);
  if (const RecordSet* selected = shards.selected())
    text += fmt::format("select {}\n", hash_of(*selected, first, index.records));
  if (const auto& weights = source.options().weights)
    text += fmt::format("weights {:08x} {:08x} {}\n", std::bit_cast<uint32_t>(weights->heavy_weight),
                        std::bit_cast<uint32_t>(weights->light_weight),
                        hash_of(*weights->heavy, first, index.records));
  return sha256(text);
}

}  // namespace

std::vector<std::string> row_cache_keys(const FileSource& source) {
  const std::string encoding = encoding_of(source);
  std::vector<std::string> keys;
  for (size_t shard = 0; shard < source.shards().manifest().shards().size(); ++shard)
    keys.push_back(key_of(source, encoding, shard));
  return keys;
}

}  // namespace lockstep
