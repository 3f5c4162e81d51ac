#include "data/image/decode.h"

#include "data/image/jpeg.h"
#include "data/image/png.h"

namespace lockstep {

std::string decode_image(std::string_view bytes, const PartChoice& wanted, ImageExtent& full,
                         Pixels& pixels) {
  if (is_jpeg(bytes)) return decode_jpeg(bytes, wanted, full, pixels);
  if (is_png(bytes)) return decode_png(bytes, full, pixels);
  return "neither JPEG nor PNG";
}

std::string image_problem(std::string_view bytes) {
  thread_local Pixels pixels;
  ImageExtent full;
  return decode_image(
      bytes, [](ImageExtent) { return WantedPart{1}; }, full, pixels);
}

std::string image_libraries() { return jpeg_library() + ", " + png_library(); }

}  // namespace lockstep
