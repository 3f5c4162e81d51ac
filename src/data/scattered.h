// ScatteredSource: another source's records under other numbers, in an order that depends on nothing but how
// many there are. Where files lie class by class, a range of numbers is then a sample of all classes: what is
// held out is taken from such a range.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "data/order/permutation.h"
#include "data/wrapped_source.h"

namespace lockstep {

class ScatteredSource : public WrappedSource {
 public:
  explicit ScatteredSource(std::shared_ptr<const Source> source);

  void fill(std::span<const int64_t> records, Batch& batch) const override;
  void fill_in_epochs(std::span<const int64_t> records, std::span<const int64_t> epochs,
                      Batch& batch) const override;
  void expect(std::span<const int64_t> records, std::span<const int64_t> epochs, bool hint) const override;
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
