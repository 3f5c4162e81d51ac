// How an image is cut and changed at random before it is learnt from. The default changes nothing: the
// largest square in the middle.
#pragma once

namespace lockstep {

struct Augmentation {
  bool random_crop = false;
  double area = 0.08;  // least share of the image that a random crop covers
  bool flip = false;   // every second one, left to right
  double jitter = 0;   // brightness, contrast and saturation times 1 - jitter to 1 + jitter

  bool random() const { return random_crop || flip || jitter > 0; }
};

}  // namespace lockstep
