// RowCacheSource: the records of a FileSource from the rows that are kept of them (cache/row_cache.h). A
// record is copied from mapped memory to its row of a batch; what is held besides batches is the system's
// cache of files.
//
// Records, fingerprint, blocks and order are those of the FileSource, bit by bit. Rows that turn out to be
// damaged, or cannot be read, are warned of once for each file and decoded from the data instead; the file is
// removed, so that the next start makes it again.
#pragma once
#include <atomic>
#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/cache/row_cache.h"
#include "data/reading/row_writer.h"
#include "data/source/wrapped_source.h"

namespace lockstep {

class RowCacheSource : public WrappedSource {
 public:
  // How long a file of rows that is changed under a run may stay unnoticed.
  static constexpr std::chrono::nanoseconds kCheckEvery = std::chrono::milliseconds(100);

  // The shards of open_row_cache over the same source.
  RowCacheSource(const std::shared_ptr<const FileSource>& source, std::vector<CachedShard> shards,
                 std::chrono::nanoseconds check_every = kCheckEvery);

  void fill(std::span<const int64_t> records, Batch& batch) const override;
  int64_t memory_to_mix(int64_t) const override { return 0; }
  int64_t loads_ahead() const override { return 0; }
  bool load_ahead() const override { return false; }
  void expect_nothing() const override {}
  bool could_keep_rows() const override { return false; }  // it does
  const StageCounters* stages() const override { return &counters_; }

  int64_t bytes() const;  // of all files of rows

 private:
  using Clock = std::chrono::steady_clock;
  struct Group;

  size_t shard_of(int64_t record) const;
  // Finds the rows of some records; those that cannot be had are put down in `left`.
  void locate(std::span<const int64_t> records, uint32_t place, std::vector<PlacedRow>& rows,
              std::vector<uint32_t>& left) const;
  void give_up(std::span<const PlacedRow> rows, std::span<const int64_t> records,
               std::vector<uint32_t>& left) const;
  void note_damage(size_t shard, int64_t record) const;
  void decode(std::span<const int64_t> records, std::span<const uint32_t> left, Batch& batch) const;
  void check_files(Clock::time_point now) const;

  std::vector<CachedShard> shards_;
  RowLayout layout_;
  std::vector<int64_t> firsts_;  // of each shard, and the number of all records
  size_t group_;                 // rows that are copied at once
  std::chrono::nanoseconds check_every_;
  mutable StageCounters counters_;
  mutable std::vector<std::atomic<bool>> damaged_;  // shards that were warned of
  mutable std::atomic<int64_t> checked_ = 0;        // when files were last looked at
};

// Throws UserError for rows that are others in every epoch.
void require_rows_keep(const FileSource& source);
// The source over its kept rows, which are written first where they are not there. Throws UserError for rows
// that do not keep, and where open_row_cache does.
std::shared_ptr<const RowCacheSource> keep_rows(const std::shared_ptr<const FileSource>& source,
                                                const RowCacheOptions& options);

}  // namespace lockstep
