// Encoded images (JPEG, PNG) to pixels, with the same bits on every machine that has the same libraries.
//
// A JPEG is decoded with the exact integer transform and triangle upsampling of colour, both of which the
// library computes alike with and without SIMD. Where the image is wanted smaller, it is decoded at 1/2, 1/4
// or 1/8 of its size, and where a part of it is wanted, the rest is passed over: most of the work is then
// left out. The pixels of a part are those of the whole but for a few at its borders. Damage that the library
// would paper over (data that ends early, invalid codes), also outside the part, is an error.
#pragma once
#include <functional>
#include <string>
#include <string_view>

#include "data/pixels/pixels.h"

namespace lockstep {

// What is wanted of an image: its scale (1, 2, 4 or 8 eighths), and the part of it, in pixels of the full
// size, that must be there at least; an extent of 0 means all. A PNG is always decoded in full.
struct WantedPart {
  int eighths = 8;
  int64_t x = 0, y = 0, width = 0, height = 0;
};
using PartChoice = std::function<WantedPart(ImageExtent full)>;

// What is wrong with the image, in words; empty: nothing. `full` is its extent before scaling.
std::string decode_image(std::string_view bytes, const PartChoice& wanted, ImageExtent& full, Pixels& pixels);
// The same without pixels: as strict, at a part of the cost.
std::string image_problem(std::string_view bytes);

// "libjpeg-turbo 2.1.5, libpng 1.6.39": part of the identity of what is trained on images.
std::string image_libraries();

// JPEG to pixels, through libjpeg-turbo; see decode.h.
bool is_jpeg(std::string_view bytes);
std::string decode_jpeg(std::string_view bytes, const PartChoice& wanted, ImageExtent& full, Pixels& pixels);
std::string jpeg_library();

// PNG to pixels, through libpng; see decode.h. Values are taken as they are stored: gamma and colour profiles
// are passed over, 16 bits lose the lower 8, transparency is dropped.
bool is_png(std::string_view bytes);
std::string decode_png(std::string_view bytes, ImageExtent& full, Pixels& pixels);
std::string png_library();

}  // namespace lockstep
