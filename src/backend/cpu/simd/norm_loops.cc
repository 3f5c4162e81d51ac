// Layer norm and RMS norm: one code, with the mean (centered) or without. See norm_loops.h.
//
// A row is swept two or three times; it is in the first cache after the first. The variance is taken around
// the mean in its own sweep, never as E[x^2] - E[x]^2.
#include "backend/cpu/simd/norm_loops.h"

#include "backend/cpu/simd/lanes.h"

namespace lockstep::cpu::LOCKSTEP_ISA {
namespace {

inline float rsqrt(float x) { return (1.0f / sqrt(broadcast(x)))[0]; }

template <bool kCentered>
void forward(const NormForward& args, int64_t begin, int64_t end) {
  const int64_t n = args.cols;
  const float count = static_cast<float>(n);
  const float* gamma = args.gamma;
  const float* beta = kCentered ? args.beta : nullptr;
  for (int64_t r = begin; r < end; ++r) {
    const float* input = args.x + r * n;
    const float* residual = args.residual != nullptr ? args.residual + r * n : nullptr;
    float* sum = residual != nullptr ? args.sum + r * n : nullptr;
    // The first sweep adds the residual and stores what the later ones read.
    const auto take = [=](int64_t i, auto lanes) {
      const Vec v = load(input + i, lanes);
      if (residual == nullptr) return v;
      const Vec total = v + load(residual + i, lanes);
      store(sum + i, total, lanes);
      return total;
    };
    const float* x = residual != nullptr ? sum : input;
    float mean = 0.0f;
    float squares;
    if constexpr (kCentered) {
      mean = sum_lanes(n, take) / count;
      args.mean[r] = mean;
      squares = sum_lanes(n, [=](int64_t i, auto lanes) {
        const Vec d = load_or(x + i, lanes, broadcast(mean)) - mean;
        return d * d;
      });
    } else {
      squares = sum_lanes(n, [=](int64_t i, auto lanes) {
        const Vec v = take(i, lanes);
        return v * v;
      });
    }
    const float rstd = rsqrt(squares / count + args.eps);
    args.rstd[r] = rstd;
    float* y = args.y + r * n;
    for_lanes(n, [=](int64_t i, auto lanes) {
      const Vec v = load(x + i, lanes);
      const Vec offset = beta != nullptr ? load(beta + i, lanes) : zero();
      store(y + i, fma((kCentered ? v - mean : v) * rstd, load(gamma + i, lanes), offset), lanes);
    });
  }
}

// With g = dy * gamma and h the normalised x: dx = rstd * (g - mean(g) - h * mean(g * h)), without mean(g)
// for RMS. One row at a time: taking several would save loads of the parameter sums, but costs 25 % when rows
// come from memory.
template <bool kCentered>
void backward(const NormBackward& args, int64_t begin, int64_t end) {
  const int64_t n = args.cols;
  const float count = static_cast<float>(n);
  const float* gamma = args.gamma;
  float* dgamma = args.dgamma;
  float* dbeta = kCentered ? args.dbeta : nullptr;
  for (int64_t r = begin; r < end; ++r) {
    const float* x = args.x + r * n;
    const float* dy = args.dy + r * n;
    const float* dsum = args.dsum != nullptr ? args.dsum + r * n : nullptr;
    float* dx = args.dx + r * n;
    const float rstd = args.rstd[r];
    const float mean = kCentered ? args.mean[r] : 0.0f;
    const auto normalised = [=](int64_t i, auto lanes) {
      const Vec v = load(x + i, lanes);
      return (kCentered ? v - mean : v) * rstd;
    };
    const FloatPair sums = sum_lanes_pair(n, [=](int64_t i, auto lanes) -> VecPair {
      const Vec g = load(dy + i, lanes) * load(gamma + i, lanes);
      return {g, g * normalised(i, lanes)};
    });
    const float mean_g = sums.first / count;
    const float mean_gh = sums.second / count;
    for_lanes(n, [=](int64_t i, auto lanes) {
      const Vec upstream = load(dy + i, lanes);
      const Vec h = normalised(i, lanes);
      store(dgamma + i, fma(upstream, h, load(dgamma + i, lanes)), lanes);
      if (dbeta != nullptr) store(dbeta + i, load(dbeta + i, lanes) + upstream, lanes);
      const Vec g = upstream * load(gamma + i, lanes);
      Vec v = fma(h, broadcast(-mean_gh), kCentered ? g - mean_g : g) * rstd;
      if (dsum != nullptr) v += load(dsum + i, lanes);
      store(dx + i, v, lanes);
    });
  }
}

}  // namespace

extern const NormLoops norm_loops = {forward<true>, backward<true>, forward<false>, backward<false>};

}  // namespace lockstep::cpu::LOCKSTEP_ISA
