// SliceSource: a range of another source's records; how training and held-out records are told apart.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "data/source.h"

namespace lockstep {

// How many of `size` records a share holds out: at least one when the share is above 0. Throws UserError when
// nothing would be left to train on.
int64_t held_out(int64_t size, double share);

class SliceSource : public Source {
 public:
  SliceSource(std::shared_ptr<const Source> source, int64_t first, int64_t count);

  int64_t size() const override { return count_; }
  std::vector<Column> columns() const override { return source_->columns(); }
  void fill(std::span<const int64_t> records, Batch& batch) const override;
  bool varies() const override { return source_->varies(); }
  void fill_in_epochs(std::span<const int64_t> records, std::span<const int64_t> epochs,
                      Batch& batch) const override;
  int64_t looks_ahead() const override { return source_->looks_ahead(); }
  void expect(std::span<const int64_t> records, std::span<const int64_t> epochs, bool hint) const override;
  void expect_nothing() const override { source_->expect_nothing(); }
  std::string fingerprint() const override;
  int64_t block_records() const override { return source_->block_records(); }
  const StageCounters* stages() const override { return source_->stages(); }
  std::string describe(int64_t record) const override { return source_->describe(first_ + record); }
  const ShardSet* files() const override { return source_->files(); }
  int64_t record_in_files(int64_t record) const override { return source_->record_in_files(first_ + record); }

 private:
  std::vector<int64_t> moved(std::span<const int64_t> records) const;

  std::shared_ptr<const Source> source_;
  int64_t first_;
  int64_t count_;
};

}  // namespace lockstep
