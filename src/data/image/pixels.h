// Pixels: a decoded image, rows of red, green and blue bytes.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

struct Pixels {
  int64_t width = 0, height = 0;
  std::vector<uint8_t> rgb;

  void resize(int64_t w, int64_t h) {
    width = w;
    height = h;
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

}  // namespace lockstep
