// WrappedSource: a source made of another one. What is not overridden is that of the other; how batches are
// filled is left to who derives.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "data/source.h"

namespace lockstep {

class WrappedSource : public Source {
 public:
  int64_t size() const override { return source_->size(); }
  std::vector<Column> columns() const override { return source_->columns(); }
  bool varies() const override { return source_->varies(); }
  std::string fingerprint() const override { return source_->fingerprint(); }
  int64_t looks_ahead() const override { return source_->looks_ahead(); }
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

}  // namespace lockstep
