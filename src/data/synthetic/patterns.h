// PatternTokens: generated sequences for next-token training, so that a gpt of any vocabulary runs without
// any file.
//
// Each token has three likely successors, fixed by the seed; now and then any token follows. A model that has
// learnt them all reaches a loss of about 1.2. Columns: tokens i32[T], targets i32[T].
#pragma once
#include <string>
#include <vector>

#include "data/order/order.h"
#include "data/source/source.h"

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

// PatternText: generated sequences for classification, so that the encoder template runs without any file.
//
// Tokens other than 0 belong to one of `classes` sets, in a way that must be learnt token by token; the label
// is the set that occurs most often in the sequence (the lower one in a tie). Token 0 opens every sequence,
// for the pooler, and pads it where lengths vary. Columns: tokens i32[T], segments i32[T] (all 0), labels
// i32; with padding also keys_visible u8[T], 1 where a position holds a token.
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

// PatternImages: generated images for classification, so that the resnet template runs without any file.
//
// Class c of C is a grating at the angle pi c / C with random phase, wavelength and colour, under a bright
// blob somewhere and noise: the class is in the structure, not in any single pixel. Columns: images
// f32[S,S,3] with mean near 0 and deviation near 1, labels i32.
struct PatternImagesOptions {
  int64_t records = 10000;
  int64_t first =
      0;  // of the endless series that the seed defines: train and eval take ranges that do not overlap
  int64_t image = 32;  // S
  int64_t classes = 10;
  uint64_t seed = 7;
};

class PatternImages : public Source {
 public:
  explicit PatternImages(const PatternImagesOptions& options);

  int64_t size() const override { return options_.records; }
  std::vector<Column> columns() const override;
  void fill(std::span<const int64_t> records, Batch& batch) const override;
  std::string fingerprint() const override;
  std::string describe(int64_t record) const override;

 private:
  int32_t make(int64_t record, std::span<float> pixels) const;

  PatternImagesOptions options_;
};

}  // namespace lockstep
