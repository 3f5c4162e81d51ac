// PatternText: generated sequences for classification, so that the encoder template runs without any file.
//
// Tokens other than 0 belong to one of `classes` sets, in a way that must be learnt token by token; the label
// is the set that occurs most often in the sequence (the lower one in a tie). Token 0 opens every sequence,
// for the pooler, and pads it where lengths vary. Columns: tokens i32[T], segments i32[T] (all 0), labels
// i32; with padding also keys_visible u8[T], 1 where a position holds a token.
#pragma once
#include <string>
#include <vector>

#include "data/source.h"

namespace lockstep {

struct PatternTextOptions {
  int64_t records = 20000;
  int64_t first =
      0;  // of the endless series that the seed defines: train and eval take ranges that do not overlap
  int64_t seq = 64;
  int64_t vocab = 256;
  int64_t classes = 2;
  bool padded = false;  // lengths between half and all of seq
  uint64_t seed = 7;
};

class PatternText : public Source {
 public:
  explicit PatternText(const PatternTextOptions& options);

  int64_t size() const override { return options_.records; }
  std::vector<Column> columns() const override;
  void fill(std::span<const int64_t> records, Batch& batch) const override;
  std::string fingerprint() const override;
  std::string describe(int64_t record) const override;

 private:
  // Writes the tokens and returns the length; label is the most frequent set.
  int64_t make(int64_t record, std::span<int32_t> tokens, int32_t& label) const;

  PatternTextOptions options_;
  std::vector<std::vector<int32_t>> sets_;  // the tokens of each set, the most frequent first
};

}  // namespace lockstep
