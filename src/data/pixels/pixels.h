// Pixels: a decoded image or a part of one, rows of red, green and blue bytes.
#pragma once
#include <array>
#include <cstdint>
#include <span>
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

// Scales a part of an image to a square of floats, with the same bits everywhere: a triangle filter that is
// as wide as the pixels of the target, so that it averages where the image shrinks and interpolates linearly
// where it grows. Values stay in [0, 255] and are not rounded.

// In pixels of the image; borders may lie between pixels.
struct ImagePart {
  double x = 0, y = 0, width = 0, height = 0;
};

// out: size * size * 3 values, rows of red, green, blue.
void resize_image(const Pixels& image, const ImagePart& part, int64_t size, std::span<float> out);

// How an image is cut and changed at random before it is learnt from. The default changes nothing: the
// largest square in the middle.
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

// Colours of an image of floats in [0, 255]: changed as training augments them, and scaled for a network.

// Factors of brightness, contrast (around the mean grey) and saturation, applied in this order; each result
// is kept within [0, 255].
struct ColorFactors {
  float brightness = 1, contrast = 1, saturation = 1;
};
void change_colors(const ColorFactors& factors, std::span<float> rgb);

// Turns the colours of the same brightness (those of YIQ, as television had it) by turn / 2^32 of their
// circle; each result is kept within [0, 255].
void turn_hue(uint32_t turn, std::span<float> rgb);
void remove_colors(std::span<float> rgb);

// (v / 255 - mean) / deviation, for each of the three colours.
struct Normalisation {
  // Of photographs, as networks for ImageNet are trained.
  std::array<double, 3> mean{0.485, 0.456, 0.406};
  std::array<double, 3> deviation{0.229, 0.224, 0.225};
};
void normalise_colors(const Normalisation& by, std::span<float> rgb);

// Left to right, of a square with `size` pixels a side.
void mirror(int64_t size, std::span<float> rgb);

}  // namespace lockstep
