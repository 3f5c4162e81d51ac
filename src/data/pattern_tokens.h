// PatternTokens: generated sequences for next-token training, so that a gpt of any vocabulary runs without
// any file.
//
// Each token has three likely successors, fixed by the seed; now and then any token follows. A model that has
// learnt them all reaches a loss of about 1.2. Columns: tokens i32[T], targets i32[T].
#pragma once
#include <string>
#include <vector>

#include "data/order/order.h"
#include "data/source.h"

namespace lockstep {

struct PatternTokensOptions {
  int64_t records = 10000;
  int64_t first =
      0;  // of the endless series that the seed defines: train and eval take ranges that do not overlap
  int64_t seq = 128;
  int64_t vocab = 256;
  uint64_t seed = 7;
};

class PatternTokens : public Source {
 public:
  explicit PatternTokens(const PatternTokensOptions& options);

  int64_t size() const override { return options_.records; }
  std::vector<Column> columns() const override;
  void fill(std::span<const int64_t> records, Batch& batch) const override;
  std::string fingerprint() const override;
  std::string describe(int64_t record) const override;

 private:
  PatternTokensOptions options_;
  std::vector<Permutation> successors_;  // the likeliest first
};

}  // namespace lockstep
