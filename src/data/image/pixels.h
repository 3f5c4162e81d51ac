// Pixels: a decoded image or a part of one, rows of red, green and blue bytes.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

struct Pixels {
  int64_t width = 0, height = 0;
  int64_t left = 0, top = 0;                  // where the part begins
  int64_t whole_width = 0, whole_height = 0;  // of the image at this scale
  std::vector<uint8_t> rgb;

  void resize(int64_t w, int64_t h) {
    width = whole_width = w;
    height = whole_height = h;
    left = top = 0;
    rgb.resize(static_cast<size_t>(w * h * 3));
  }
  const uint8_t* row(int64_t y) const { return rgb.data() + y * width * 3; }
  uint8_t* row(int64_t y) { return rgb.data() + y * width * 3; }
};

struct ImageExtent {
  int64_t width = 0, height = 0;
};

// Larger ones are refused: decoding one takes three bytes per pixel.
inline constexpr int64_t kMostPixels = int64_t{1} << 27;
// Of files that cannot be as large as they say: no memory is taken for them.
inline constexpr const char* kTooLittleData = "too little data for its width and height";

}  // namespace lockstep
