// Encoded images (JPEG, PNG) to pixels, with the same bits on every machine that has the same libraries.
//
// A JPEG is decoded with the exact integer transform and triangle upsampling of colour, both of which the
// library computes alike with and without SIMD. Where the image is wanted smaller, it is decoded at 1/2, 1/4
// or 1/8 of its size: most of the work of decoding is then left out. Damage that the library would paper over
// (data that ends early, invalid codes) is an error.
#pragma once
#include <functional>
#include <string>
#include <string_view>

#include "data/image/pixels.h"

namespace lockstep {

// Says at what share of its size (1, 2, 4 or 8 eighths) an image of this extent is wanted. A PNG is always
// decoded in full.
using ScaleChoice = std::function<int(ImageExtent full)>;

// What is wrong with the image, in words; empty: nothing. `full` is its extent before scaling.
std::string decode_image(std::string_view bytes, const ScaleChoice& eighths, ImageExtent& full,
                         Pixels& pixels);
// The same without pixels: as strict, at a part of the cost.
std::string image_problem(std::string_view bytes);

// "libjpeg-turbo 2.1.5, libpng 1.6.39": part of the identity of what is trained on images.
std::string image_libraries();

}  // namespace lockstep
