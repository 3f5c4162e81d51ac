// ScatteredSource: another source's records under other numbers, in an order that depends on nothing but how
// many there are. Where files lie class by class, a range of numbers is then a sample of all classes: what is
// held out is taken from such a range.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "data/order/permutation.h"
#include "data/source.h"

namespace lockstep {

class ScatteredSource : public Source {
 public:
  explicit ScatteredSource(std::shared_ptr<const Source> source);

  int64_t size() const override { return source_->size(); }
  std::vector<Column> columns() const override { return source_->columns(); }
  void fill(std::span<const int64_t> records, Batch& batch) const override;
  bool varies() const override { return source_->varies(); }
  void fill_in_epochs(std::span<const int64_t> records, std::span<const int64_t> epochs,
                      Batch& batch) const override;
  int64_t looks_ahead() const override { return source_->looks_ahead(); }
  void expect(std::span<const int64_t> records, std::span<const int64_t> epochs, bool hint) const override;
  void expect_nothing() const override { source_->expect_nothing(); }
  std::string fingerprint() const override;
  const StageCounters* stages() const override { return source_->stages(); }
  std::string describe(int64_t record) const override { return source_->describe(places_(record)); }
  const ShardSet* files() const override { return source_->files(); }
  int64_t record_in_files(int64_t record) const override { return source_->record_in_files(places_(record)); }

 private:
  std::vector<int64_t> places(std::span<const int64_t> records) const;

  std::shared_ptr<const Source> source_;
  Permutation places_;
};

}  // namespace lockstep
