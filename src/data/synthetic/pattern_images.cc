#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/portable_math.h"
#include "base/sha256.h"
#include "data/order/draws.h"
#include "data/synthetic/patterns.h"

namespace lockstep {
namespace {

constexpr uint32_t kRecordStream = 12;
constexpr uint32_t kNoiseStream = 13;
constexpr float kNoise = 0.8f;

// An angle in turns as the integer that portable_sin_cos takes; whole turns fall away.
uint32_t turn_of(double turns) { return static_cast<uint32_t>(static_cast<int64_t>(turns * 0x1p32)); }

// Factors of the picture along one axis: cosine and sine of the grating's phase there, and the blob's
// profile.
struct Axis {
  std::vector<float> cos, sin, blob;

  Axis(int64_t size, double turns_per_pixel, double phase, double blob_centre, double blob_width) {
    for (int64_t i = 0; i < size; ++i) {
      const SinCos angle = portable_sin_cos(turn_of(static_cast<double>(i) * turns_per_pixel + phase));
      cos.push_back(static_cast<float>(angle.cos));
      sin.push_back(static_cast<float>(angle.sin));
      const double distance = (static_cast<double>(i) - blob_centre) / blob_width;
      blob.push_back(static_cast<float>(portable_exp(-0.5 * distance * distance)));
    }
  }
};

}  // namespace

PatternImages::PatternImages(const PatternImagesOptions& options) : options_(options) {
  if (options.records < 1 || options.classes < 2 || options.image < 4)
    throw UserError("pattern_images: {} records of {} pixels in {} classes; use at least 1, 4 and 2",
                    options.records, options.image, options.classes);
}

std::vector<Column> PatternImages::columns() const {
  return {{"images", DType::kF32, {options_.image, options_.image, 3}}, {"labels", DType::kI32, {}}};
}

int32_t PatternImages::make(int64_t record, std::span<float> pixels) const {
  const uint64_t index = static_cast<uint64_t>(options_.first + record);
  Draws draws(options_.seed, kRecordStream, index);
  const uint32_t label = draws.below(static_cast<uint64_t>(options_.classes));
  const int64_t size = options_.image;
  const double side = static_cast<double>(size);
  const SinCos direction = portable_sin_cos(turn_of(0.5 * label / static_cast<double>(options_.classes)));
  const double frequency = draws.between(0.09, 0.16);  // turns per pixel
  const Axis rows(size, frequency * direction.sin, draws.uniform(), draws.uniform() * side, side / 6);
  const Axis columns(size, frequency * direction.cos, 0, draws.uniform() * side, side / 6);
  std::array<float, 3> grating, blob;
  for (float& channel : grating) channel = static_cast<float>(draws.between(0.3, 1.2));
  for (float& channel : blob) channel = static_cast<float>(draws.between(-2.0, 2.0));

  Draws noise(options_.seed, kNoiseStream, index);
  size_t at = 0;
  for (size_t y = 0; y < rows.cos.size(); ++y)
    for (size_t x = 0; x < columns.cos.size(); ++x) {
      const float wave = rows.sin[y] * columns.cos[x] + rows.cos[y] * columns.sin[x];
      const float bump = rows.blob[y] * columns.blob[x];
      // Three bytes of one word: uniform in (-1, 1), scaled to the deviation kNoise.
      uint32_t word = noise.bits();
      for (size_t channel = 0; channel < 3; ++channel, word >>= 8)
        pixels[at++] = grating[channel] * wave + blob[channel] * bump +
                       (static_cast<float>(word & 255) - 127.5f) * (kNoise * 1.7320508f / 128.0f);
    }
  return static_cast<int32_t>(label);
}

void PatternImages::fill(std::span<const int64_t> records, Batch& batch) const {
  check_fill(records, batch);
  for (size_t r = 0; r < records.size(); ++r) {
    const int64_t row = static_cast<int64_t>(r);
    const auto pixels = batch.record<float>(0, row);
    int32_t label = kIgnoredLabel;
    if (records[r] == kNoRecord)
      std::fill(pixels.begin(), pixels.end(), 0.0f);
    else
      label = make(records[r], pixels);
    batch.record<int32_t>(1, row)[0] = label;
  }
}

std::string PatternImages::fingerprint() const {
  return sha256(fmt::format("pattern_images 1\n{} {} {} {} {}\n", options_.records, options_.first,
                            options_.image, options_.classes, options_.seed));
}

std::string PatternImages::describe(int64_t record) const {
  return fmt::format("pattern_images record {}", options_.first + record);
}

}  // namespace lockstep
