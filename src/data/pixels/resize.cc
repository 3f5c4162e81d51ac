#include <algorithm>
#include <cmath>
#include <vector>

#include "base/error.h"
#include "data/pixels/pixels.h"

namespace lockstep {
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
