// Colours of an image of floats in [0, 255]: changed as training augments them, and scaled for a network.
#pragma once
#include <array>
#include <cstdint>
#include <span>

namespace lockstep {

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
