// PNG to pixels, through libpng; see decode.h. Values are taken as they are stored: gamma and colour profiles
// are passed over, 16 bits lose the lower 8, transparency is dropped.
#pragma once
#include <string>
#include <string_view>

#include "data/image/pixels.h"

namespace lockstep {

bool is_png(std::string_view bytes);
std::string decode_png(std::string_view bytes, ImageExtent& full, Pixels& pixels);
std::string png_library();

}  // namespace lockstep
