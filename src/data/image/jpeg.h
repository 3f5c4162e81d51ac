// JPEG to pixels, through libjpeg-turbo; see decode.h.
#pragma once
#include <string>
#include <string_view>

#include "data/image/decode.h"

namespace lockstep {

bool is_jpeg(std::string_view bytes);
std::string decode_jpeg(std::string_view bytes, const PartChoice& wanted, ImageExtent& full, Pixels& pixels);
std::string jpeg_library();

}  // namespace lockstep
