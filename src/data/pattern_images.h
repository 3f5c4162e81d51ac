// PatternImages: generated images for classification, so that the resnet template runs without any file.
//
// Class c of C is a grating at the angle pi c / C with random phase, wavelength and colour, under a bright
// blob somewhere and noise: the class is in the structure, not in any single pixel. Columns: images
// f32[S,S,3] with mean near 0 and deviation near 1, labels i32.
#pragma once
#include <string>
#include <vector>

#include "data/source.h"

namespace lockstep {

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
