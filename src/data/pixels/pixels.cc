#include "data/pixels/pixels.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "base/error.h"
#include "base/portable_math.h"

namespace lockstep {
namespace {

float grey_of(const float* rgb) { return 0.299f * rgb[0] + 0.587f * rgb[1] + 0.114f * rgb[2]; }

float within(float value) { return std::clamp(value, 0.0f, 255.0f); }

}  // namespace

void change_colors(const ColorFactors& factors, std::span<float> rgb) {
  double sum = 0;  // in the order of the pixels
  for (size_t i = 0; i < rgb.size(); i += 3) {
    for (size_t c = 0; c < 3; ++c) rgb[i + c] = within(rgb[i + c] * factors.brightness);
    sum += static_cast<double>(grey_of(&rgb[i]));
  }
  const auto mean = static_cast<float>(sum / (static_cast<double>(rgb.size()) / 3));
  for (size_t i = 0; i < rgb.size(); i += 3) {
    for (size_t c = 0; c < 3; ++c) rgb[i + c] = within(mean + (rgb[i + c] - mean) * factors.contrast);
    const float grey = grey_of(&rgb[i]);
    for (size_t c = 0; c < 3; ++c) rgb[i + c] = within(grey + (rgb[i + c] - grey) * factors.saturation);
  }
}

void turn_hue(uint32_t turn, std::span<float> rgb) {
  constexpr double kToYiq[3][3] = {{0.299, 0.587, 0.114}, {0.596, -0.274, -0.322}, {0.211, -0.523, 0.312}};
  constexpr double kFromYiq[3][3] = {{1, 0.956, 0.621}, {1, -0.272, -0.647}, {1, -1.106, 1.703}};
  const SinCos by = portable_sin_cos(turn);
  const double turned[3][3] = {{1, 0, 0}, {0, by.cos, -by.sin}, {0, by.sin, by.cos}};
  float matrix[3][3];
  for (size_t row = 0; row < 3; ++row)
    for (size_t column = 0; column < 3; ++column) {
      double sum = 0;
      for (size_t i = 0; i < 3; ++i)
        for (size_t j = 0; j < 3; ++j) sum += kFromYiq[row][i] * turned[i][j] * kToYiq[j][column];
      matrix[row][column] = static_cast<float>(sum);
    }
  for (size_t at = 0; at < rgb.size(); at += 3) {
    const float red = rgb[at], green = rgb[at + 1], blue = rgb[at + 2];
    for (size_t c = 0; c < 3; ++c)
      rgb[at + c] = within(matrix[c][0] * red + matrix[c][1] * green + matrix[c][2] * blue);
  }
}

void remove_colors(std::span<float> rgb) {
  for (size_t at = 0; at < rgb.size(); at += 3) {
    const float grey = grey_of(&rgb[at]);
    for (size_t c = 0; c < 3; ++c) rgb[at + c] = grey;
  }
}

void normalise_colors(const Normalisation& by, std::span<float> rgb) {
  // Four pixels at a time: twelve values fill whole vectors.
  constexpr size_t kStep = 12;
  float scale[kStep], shift[kStep];
  for (size_t i = 0; i < kStep; ++i) {
    scale[i] = static_cast<float>(1 / (255 * by.deviation[i % 3]));
    shift[i] = static_cast<float>(-by.mean[i % 3] / by.deviation[i % 3]);
  }
  const size_t whole = rgb.size() / kStep * kStep;
  float* values = rgb.data();
  for (size_t at = 0; at < whole; at += kStep)
    for (size_t i = 0; i < kStep; ++i) values[at + i] = values[at + i] * scale[i] + shift[i];
  for (size_t at = whole; at < rgb.size(); ++at) values[at] = values[at] * scale[at % 3] + shift[at % 3];
}

void mirror(int64_t size, std::span<float> rgb) {
  const auto pixels = static_cast<size_t>(size);
  for (size_t y = 0; y < pixels; ++y) {
    float* row = rgb.data() + y * pixels * 3;
    for (size_t left = 0, right = pixels - 1; left < right; ++left, --right)
      std::swap_ranges(row + left * 3, row + left * 3 + 3, row + right * 3);
  }
}

namespace {

// For every target pixel: the source pixels [first, first + count) and their weights.
struct Taps {
  struct Range {
    int64_t first, count, weights;  // the last: where its weights begin
  };
  std::vector<Range> ranges;
  std::vector<float> weights;

  // Source pixels [begin, begin + extent) of `all` along an axis onto `size` pixels.
  void plan(double begin, double extent, int64_t all, int64_t size) {
    ranges.clear();
    weights.clear();
    const double scale = extent / static_cast<double>(size);
    const double reach = std::max(scale, 1.0);
    for (int64_t i = 0; i < size; ++i) {
      const double centre = begin + (static_cast<double>(i) + 0.5) * scale;
      const auto first = std::max<int64_t>(static_cast<int64_t>(std::floor(centre - reach + 0.5)), 0);
      const auto end = std::min<int64_t>(static_cast<int64_t>(std::floor(centre + reach + 0.5)), all);
      const auto at = static_cast<int64_t>(weights.size());
      double sum = 0;
      for (int64_t x = first; x < end; ++x) {
        const double distance = std::fabs(static_cast<double>(x) + 0.5 - centre) / reach;
        const double weight = std::max(1 - distance, 0.0);
        weights.push_back(static_cast<float>(weight));
        sum += weight;
      }
      LOCKSTEP_CHECK(sum > 0, "no pixel near {} of {}", centre, all);
      const auto whole = static_cast<float>(1 / sum);
      for (size_t w = static_cast<size_t>(at); w < weights.size(); ++w) weights[w] *= whole;
      ranges.push_back({first, end - first, at});
    }
  }
};

// sum[i] += weight * bytes[i], for the weighted rows of one target row.
void add_row(const uint8_t* bytes, float weight, float* sum, int64_t count) {
  for (int64_t i = 0; i < count; ++i) sum[i] += weight * static_cast<float>(bytes[i]);
}

}  // namespace

void resize_image(const Pixels& image, const ImagePart& part, int64_t size, std::span<float> out) {
  LOCKSTEP_CHECK(static_cast<int64_t>(out.size()) == size * size * 3, "{} values for {} pixels a side",
                 out.size(), size);
  thread_local Taps across, down;
  thread_local std::vector<float> row;
  across.plan(part.x, part.width, image.width, size);
  down.plan(part.y, part.height, image.height, size);
  const int64_t left = across.ranges.front().first;
  const int64_t width = across.ranges.back().first + across.ranges.back().count - left;
  // Pixels are read four values at a time; the last one needs a value after it.
  row.resize(static_cast<size_t>(width * 3 + 1));
  float* to = out.data();
  for (const Taps::Range& rows : down.ranges) {
    std::fill(row.begin(), row.end(), 0.0f);
    for (int64_t k = 0; k < rows.count; ++k)
      add_row(image.row(rows.first + k) + left * 3, down.weights[static_cast<size_t>(rows.weights + k)],
              row.data(), width * 3);
    for (const Taps::Range& pixels : across.ranges) {
      float sum[4] = {0, 0, 0, 0};
      const float* from = row.data() + (pixels.first - left) * 3;
      const float* weights = across.weights.data() + pixels.weights;
      for (int64_t k = 0; k < pixels.count; ++k, from += 3)
        for (int c = 0; c < 4; ++c) sum[c] += weights[k] * from[c];
      for (int c = 0; c < 3; ++c) *to++ = sum[c];
    }
  }
}

}  // namespace lockstep
