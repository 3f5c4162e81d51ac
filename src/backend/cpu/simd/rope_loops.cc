// Rotary position embedding for one instruction set; see rope_loops.h for the layouts.
#include "backend/cpu/simd/rope_loops.h"

#include "backend/cpu/simd/each_vec.h"
#include "backend/cpu/simd/vec.h"

namespace lockstep::cpu::LOCKSTEP_ISA {
namespace {

// Cosine and sine in double, by reduction to [-pi/4, pi/4] and Taylor series, then rounded to float; for
// angles below 2^20.
void cos_sin(double angle, float& cos, float& sin) {
  // pi/2 in two parts; the first ends in 20 zero bits, so that its product by a quadrant number is exact.
  constexpr double kHalfPiHigh = 0x1.921fb544p+0, kHalfPiLow = 0x1.0b4611a626331p-34;
  const double quadrant = __builtin_floor(angle * 0.63661977236758134308 + 0.5);
  const double x = (angle - quadrant * kHalfPiHigh) - quadrant * kHalfPiLow;
  const double x2 = x * x;
  double s = 1.0, c = 1.0;
  for (int n = 16; n >= 2; n -= 2) {
    s = 1.0 - s * x2 / (n * (n + 1));
    c = 1.0 - c * x2 / (n * (n - 1));
  }
  s *= x;
  const int64_t turn = static_cast<int64_t>(quadrant) & 3;
  const double rotated_cos = (turn & 1) ? s : c, rotated_sin = (turn & 1) ? c : s;
  cos = static_cast<float>(turn == 1 || turn == 2 ? -rotated_cos : rotated_cos);
  sin = static_cast<float>(turn >= 2 ? -rotated_sin : rotated_sin);
}

void fill_tables(const float* frequencies, int64_t pairs, int64_t first_position, int64_t last_position,
                 float* cos, float* sin) {
  for (int64_t position = first_position; position < last_position; ++position) {
    for (int64_t i = 0; i < pairs; ++i) {
      // The angle is rounded to float, as in the implementations that published checkpoints were trained
      // with.
      const float angle = static_cast<float>(position) * frequencies[i];
      cos_sin(angle, cos[position * pairs + i], sin[position * pairs + i]);
    }
  }
}

void rotate_halves(const float* x, float* y, const float* cos, const float* sin, int64_t pairs, float sign) {
  each_vec(0, pairs, [&](int64_t i, auto lanes) {
    const Vec c = load(cos + i, lanes), s = load(sin + i, lanes) * broadcast(sign);
    const Vec a = load(x + i, lanes), b = load(x + pairs + i, lanes);
    store(y + i, fma(a, c, -(b * s)), lanes);
    store(y + pairs + i, fma(b, c, a * s), lanes);
  });
}

void rotate_interleaved(const float* x, float* y, const float* cos, const float* sin, int64_t pairs,
                        float sign) {
  VecInt doubled = {}, swapped = {};
  Vec signs = {};
  for (int i = 0; i < kLanes; ++i) {
    doubled[i] = i / 2;
    swapped[i] = i ^ 1;
    signs[i] = (i & 1) ? sign : -sign;
  }
  each_vec(0, 2 * pairs, [&](int64_t i, auto lanes) {
    const int64_t left = pairs - i / 2, half = left < kLanes / 2 ? left : kLanes / 2;
    const Vec c = __builtin_shuffle(load(cos + i / 2, half), doubled);
    const Vec s = __builtin_shuffle(load(sin + i / 2, half), doubled) * signs;
    const Vec a = load(x + i, lanes);
    store(y + i, fma(a, c, __builtin_shuffle(a, swapped) * s), lanes);
  });
}

void rotate(const RopeRotation& r, int64_t first_token, int64_t last_token) {
  const int64_t pairs = r.rotary_dim / 2;
  const float sign = r.inverse ? -1.0f : 1.0f;
  const auto rotate_head = r.interleaved ? rotate_interleaved : rotate_halves;
  for (int64_t token = first_token; token < last_token; ++token) {
    const int64_t b = token / r.tokens, t = token % r.tokens;
    const int64_t position = r.positions ? r.positions[token] : t;
    const float* cos = r.cos + position * pairs;
    const float* sin = r.sin + position * pairs;
    for (int64_t h = 0; h < r.heads; ++h) {
      const float* x = r.x + b * r.x_strides.batch + t * r.x_strides.row + h * r.x_strides.head;
      float* y = r.y + b * r.y_strides.batch + t * r.y_strides.row + h * r.y_strides.head;
      rotate_head(x, y, cos, sin, pairs, sign);
      if (y == x) continue;
      for (int64_t d = r.rotary_dim; d < r.head_dim; ++d) y[d] = x[d];
    }
  }
}

}  // namespace

extern const RopeLoops rope_loops = {rotate, fill_tables};

}  // namespace lockstep::cpu::LOCKSTEP_ISA
