// SliceSource: a range of another source's records; how training and held-out records are told apart.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "data/wrapped_source.h"

namespace lockstep {

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
  void expect(std::span<const int64_t> records, std::span<const int64_t> epochs, bool hint) const override;
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

}  // namespace lockstep
