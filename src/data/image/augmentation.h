// How an image is cut and changed at random before it is learnt from. The default changes nothing: the
// largest square in the middle.
#pragma once
#include <array>

namespace lockstep {

struct Augmentation {
  bool random_crop = false;
  double area = 0.08;                                   // least share of the image that a random crop covers
  std::array<double, 2> ratio{0.75, 4.0 / 3};           // width to height of a random crop
  bool flip = false;                                    // every second one, left to right
  double brightness = 0, contrast = 0, saturation = 0;  // each times 1 - x to 1 + x
  double hue = 0;                                       // colours turned by up to this part of their circle
  double grayscale = 0;                                 // share of the images that lose their colours

  bool recolors() const { return brightness > 0 || contrast > 0 || saturation > 0 || hue > 0; }
  bool random() const { return random_crop || flip || recolors() || grayscale > 0; }
};

}  // namespace lockstep
