#include "base/philox.h"

#include <algorithm>
#include <cmath>

#include "base/draw_arithmetic.h"

namespace lockstep {

using draws::normal_pair;
using draws::uniform_of;

std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter, PhiloxKey key) {
  auto [c0, c1, c2, c3] = counter;
  for (int round = 0; round < kPhiloxRounds; ++round) {
    const uint64_t product0 = uint64_t{kPhiloxMultiplier0} * c0;
    const uint64_t product1 = uint64_t{kPhiloxMultiplier1} * c2;
    c0 = static_cast<uint32_t>(product1 >> 32) ^ c1 ^ key.k0;
    c2 = static_cast<uint32_t>(product0 >> 32) ^ c3 ^ key.k1;
    c1 = static_cast<uint32_t>(product1);
    c3 = static_cast<uint32_t>(product0);
    key.k0 += kPhiloxWeyl0;
    key.k1 += kPhiloxWeyl1;
  }
  return {c0, c1, c2, c3};
}

std::array<uint32_t, 4> Philox::block(uint64_t counter) const {
  return philox4x32({static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32),
                     static_cast<uint32_t>(stream_), static_cast<uint32_t>(stream_ >> 32)},
                    {static_cast<uint32_t>(seed_), static_cast<uint32_t>(seed_ >> 32)});
}

float Philox::uniform(uint64_t index) const { return uniform_of(bits(index)); }

float Philox::normal(uint64_t index) const {
  const auto words = block(index / 4);
  const auto pair = normal_pair(words[index % 4 & 2], words[(index % 4) | 1]);
  return index % 2 == 0 ? pair.even : pair.odd;
}

uint64_t Philox::bernoulli_threshold(double p) {
  if (!(p > 0.0)) return 0;
  if (p >= 1.0) return uint64_t{1} << 32;
  return static_cast<uint64_t>(p * 0x1p32 + 0.5);
}

void Philox::fill_normal(std::span<float> out, float mean, float std, uint64_t first) const {
  std::array<float, 4> z;
  for (size_t j = 0; j < out.size(); ++j) {
    const uint64_t index = first + j;
    if (j == 0 || index % 4 == 0) {
      const auto words = block(index / 4);
      const auto low = normal_pair(words[0], words[1]);
      const auto high = normal_pair(words[2], words[3]);
      z = {low.even, low.odd, high.even, high.odd};
    }
    out[j] = mean + std * z[index % 4];
  }
}

void Philox::fill_uniform(std::span<float> out, float lo, float hi, uint64_t first) const {
  const float last = std::nextafter(hi, lo);
  std::array<uint32_t, 4> words;
  for (size_t j = 0; j < out.size(); ++j) {
    const uint64_t index = first + j;
    if (j == 0 || index % 4 == 0) words = block(index / 4);
    const float value = lo + (hi - lo) * uniform_of(words[index % 4]);
    out[j] = value < hi ? value : last;
  }
}

void RandomFill::fill(int64_t first, std::span<float> values) const {
  const auto begin = static_cast<uint64_t>(first);
  const Philox random(seed, stream);
  switch (kind) {
    case Kind::kConstant: std::fill(values.begin(), values.end(), a); break;
    case Kind::kNormal: random.fill_normal(values, a, b, begin); break;
    case Kind::kUniform: random.fill_uniform(values, a, b, begin); break;
  }
  const int64_t last = first + static_cast<int64_t>(values.size());
  for (int64_t i = std::max(first, zeros_begin); i < std::min(last, zeros_end); ++i)
    values[static_cast<size_t>(i - first)] = 0;
}

}  // namespace lockstep
