// WrappedSource: a source made of another one. What is not overridden is that of the other; how batches are
// filled is left to who derives.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "data/order/permutation.h"
#include "data/source/source.h"

namespace lockstep {

class WrappedSource : public Source {
 public:
  int64_t size() const override { return source_->size(); }
  std::vector<Column> columns() const override { return source_->columns(); }
  bool varies() const override { return source_->varies(); }
  std::string fingerprint() const override { return source_->fingerprint(); }
  int64_t memory_to_mix(int64_t records) const override { return source_->memory_to_mix(records); }
  int64_t loads_ahead() const override { return source_->loads_ahead(); }
  bool load_ahead() const override { return source_->load_ahead(); }
  void expect_nothing() const override { source_->expect_nothing(); }
  int64_t block_records() const override { return source_->block_records(); }
  bool could_keep_rows() const override { return source_->could_keep_rows(); }
  const StageCounters* stages() const override { return source_->stages(); }
  std::string describe(int64_t record) const override { return source_->describe(record); }
  const ShardSet* files() const override { return source_->files(); }
  int64_t record_in_files(int64_t record) const override { return source_->record_in_files(record); }

 protected:
  explicit WrappedSource(std::shared_ptr<const Source> source) : source_(std::move(source)) {}
  const Source& wrapped() const { return *source_; }

 private:
  std::shared_ptr<const Source> source_;
};

// SliceSource: a range of another source's records; how training and held-out records are told apart.

// How many of `size` records a share holds out: at least one when the share is above 0. Throws UserError when
// nothing would be left to train on.
int64_t held_out(int64_t size, double share);

class SliceSource : public WrappedSource {
 public:
  SliceSource(std::shared_ptr<const Source> source, int64_t first, int64_t count);

  int64_t size() const override { return count_; }
  void fill(std::span<const int64_t> records, Batch& batch) const override;
  void fill_in_epochs(std::span<const int64_t> records, std::span<const int64_t> epochs,
                      Batch& batch) const override;
  void expect(std::span<const int64_t> records, std::span<const int64_t> epochs) const override;
  std::string fingerprint() const override;
  std::string describe(int64_t record) const override { return wrapped().describe(first_ + record); }
  int64_t record_in_files(int64_t record) const override {
    return wrapped().record_in_files(first_ + record);
  }

 private:
  std::vector<int64_t> moved(std::span<const int64_t> records) const;

  int64_t first_;
  int64_t count_;
};

// ScatteredSource: another source's records under other numbers, in an order that depends on nothing but how
// many there are. Where files lie class by class, a range of numbers is then a sample of all classes: what is
// held out is taken from such a range.
class ScatteredSource : public WrappedSource {
 public:
  explicit ScatteredSource(std::shared_ptr<const Source> source);

  void fill(std::span<const int64_t> records, Batch& batch) const override;
  void fill_in_epochs(std::span<const int64_t> records, std::span<const int64_t> epochs,
                      Batch& batch) const override;
  void expect(std::span<const int64_t> records, std::span<const int64_t> epochs) const override;
  std::string fingerprint() const override;
  int64_t block_records() const override { return 1; }  // neighbours lie anywhere
  std::string describe(int64_t record) const override { return wrapped().describe(places_(record)); }
  int64_t record_in_files(int64_t record) const override {
    return wrapped().record_in_files(places_(record));
  }

 private:
  std::vector<int64_t> places(std::span<const int64_t> records) const;

  Permutation places_;
};

}  // namespace lockstep
