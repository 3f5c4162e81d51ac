// Scales a part of an image to a square of floats, with the same bits everywhere: a triangle filter that is
// as wide as the pixels of the target, so that it averages where the image shrinks and interpolates linearly
// where it grows. Values stay in [0, 255] and are not rounded.
#pragma once
#include <cstdint>
#include <span>

#include "data/image/pixels.h"

namespace lockstep {

// In pixels of the image; borders may lie between pixels.
struct ImagePart {
  double x = 0, y = 0, width = 0, height = 0;
};

// out: size * size * 3 values, rows of red, green, blue.
void resize_image(const Pixels& image, const ImagePart& part, int64_t size, std::span<float> out);

}  // namespace lockstep
