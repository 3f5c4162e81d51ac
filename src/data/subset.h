// SubsetSource: some of another source's records, in their order; how the records of some entities are told
// apart from those of others.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "data/order/record_set.h"
#include "data/source.h"

namespace lockstep {

class SubsetSource : public Source {
 public:
  // `definition` says which records these are, for the fingerprint.
  SubsetSource(std::shared_ptr<const Source> source, RecordSet set, std::string definition);

  int64_t size() const override { return set_.size(); }
  std::vector<Column> columns() const override { return source_->columns(); }
  void fill(std::span<const int64_t> records, Batch& batch) const override;
  bool varies() const override { return source_->varies(); }
  void fill_in_epochs(std::span<const int64_t> records, std::span<const int64_t> epochs,
                      Batch& batch) const override;
  std::string fingerprint() const override;
  int64_t block_records() const override { return source_->block_records(); }
  const StageCounters* stages() const override { return source_->stages(); }
  std::string describe(int64_t record) const override { return source_->describe(set_[record]); }

 private:
  std::vector<int64_t> originals(std::span<const int64_t> records, const Batch& batch) const;

  std::shared_ptr<const Source> source_;
  RecordSet set_;
  std::string definition_;
};

}  // namespace lockstep
