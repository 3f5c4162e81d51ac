// Updates of parameters stored in bf16: bit for bit the arithmetic of the CPU's, here element by element in
// float, rounded with the draws that the op defines.
#include <algorithm>

#include "backend/cuda/kernels/rounded_update.h"
#include "kernel_check.h"
#include "ops/stochastic_rounding.h"

namespace kernel_check {
namespace {

using namespace lockstep::cuda;

constexpr int64_t kSeed = 123456789, kPosition = 77;

struct Element {
  float p, m, v;
};
using Rule = std::function<Element(const Element&, float gradient, bool decays)>;

double power(double base, int64_t exponent) {
  double result = 1.0;
  for (; exponent > 0; exponent >>= 1, base *= base)
    if (exponent & 1) result *= base;
  return result;
}

float to_f32(double x) { return static_cast<float>(x); }

Rule adam_rule(const AdamAttributes& a, bool decoupled, float scale, float lr, int64_t t) {
  const double bias1 = 1.0 - power(a.beta1, t), bias2 = 1.0 - power(a.beta2, t);
  const float step_size = to_f32(lr / bias1), inverse = to_f32(1.0 / std::sqrt(bias2));
  const float decay = to_f32(1.0 - double{lr} * a.weight_decay);
  return [=](const Element& old, float g, bool decays) {
    float gradient = g * scale, p = old.p;
    if (decays && decoupled) p = p * decay;
    if (decays && !decoupled) gradient = std::fmaf(to_f32(a.weight_decay), p, gradient);
    const float m = std::fmaf(to_f32(a.beta1), old.m, to_f32(1.0 - a.beta1) * gradient);
    const float v = std::fmaf(to_f32(a.beta2), old.v, to_f32(1.0 - a.beta2) * gradient * gradient);
    const float denominator = std::fmaf(std::sqrt(v), inverse, to_f32(a.epsilon));
    return Element{std::fmaf(-step_size, m / denominator, p), m, v};
  };
}

Rule lion_rule(const AdamAttributes& a, float scale, float lr) {
  const float decay = to_f32(1.0 - double{lr} * a.weight_decay);
  return [=](const Element& old, float g, bool decays) {
    const float gradient = g * scale;
    const float direction = std::fmaf(to_f32(a.beta1), old.m, to_f32(1.0 - a.beta1) * gradient);
    const float m = std::fmaf(to_f32(a.beta2), old.m, to_f32(1.0 - a.beta2) * gradient);
    const float move = direction > 0 ? lr : direction < 0 ? -lr : 0.0f;
    return Element{(decays ? old.p * decay : old.p) - move, m, 0};
  };
}

Rule sgd_rule(bool has_momentum, float momentum, bool nesterov, float weight_decay, float scale, float lr) {
  return [=](const Element& old, float g, bool decays) {
    const float gradient = decays ? std::fmaf(weight_decay, old.p, g * scale) : g * scale;
    const float m = has_momentum ? std::fmaf(momentum, old.m, gradient) : old.m;
    const float direction = !has_momentum ? gradient : nesterov ? std::fmaf(momentum, m, gradient) : m;
    return Element{std::fmaf(-lr, direction, old.p), m, 0};
  };
}

// Three tensors, one of which begins in the middle of a pack of eight, and another that is a part of its
// tensor.
std::vector<DrawRange> ranges_of(int64_t n) {
  return {{0, 0, {5, 6, 7}}, {1004, 2048, {77, 78, 79}}, {n / 2 / 1024 * 1024, 4, {1234567890123, 9, 10}}};
}

// The ranges of elements [begin, end).
std::vector<DrawRange> part_of(const std::vector<DrawRange>& all, int64_t begin, int64_t end) {
  std::vector<DrawRange> part;
  for (size_t i = 0; i < all.size(); ++i) {
    DrawRange range = all[i];
    const int64_t stop = i + 1 < all.size() ? all[i + 1].begin : end, first = std::max(range.begin, begin);
    if (first >= std::min(stop, end)) continue;
    range.first += first - range.begin;
    range.begin = first - begin;
    part.push_back(range);
  }
  return part;
}

struct State {
  int64_t n, offset;  // elements that the buffers begin after
  DType moments;
  bool has_m, has_v;
  Tensor p, g, m, v, scale, lr, step, rounding;
  std::vector<double> edges{100, 300, 1001, 1003};

  State(int64_t n_, DType moments_, bool m_, bool v_, int64_t offset_ = 0)
      : n(n_), offset(offset_), moments(moments_), has_m(m_), has_v(v_) {
    p = random_tensor(DType::kBF16, n + offset, 71);
    g = random_tensor(DType::kBF16, n + offset, 74);
    m = random_tensor(moments, n + offset, 72, -0.1, 0.1);
    v = random_tensor(moments, n + offset, 73, 0, 0.01);
    scale = values(DType::kF32, {0.7}), lr = values(DType::kF32, {0.01}), step = values(DType::kI64, {5});
    rounding = values(DType::kI64, {static_cast<double>(kSeed), static_cast<double>(kPosition)});
  }
  float s() const { return to_f32(scale[0]); }
  float rate() const { return to_f32(lr[0]); }
  void reset() { p.upload(), m.upload(), v.upload(); }

  // Everything on the device that a launch over elements [begin, end) takes.
  struct Launch {
    RoundedState state;
    StepScalars scalars;
    NoDecay no_decay{};
    Draws draws;
    DeviceBuffer ranges;
    Tensor edges;
  };
  Launch launch(int64_t begin, int64_t end) const {
    Launch l;
    const auto at = [&](const Tensor& t) {
      return static_cast<char*>(t.data()) + (offset + begin) * lockstep::size_of(t.dtype);
    };
    const auto updated = [&](const Tensor& t, bool there) {
      return there ? Updated{at(t), at(t)} : Updated{nullptr, nullptr};
    };
    l.state = {updated(p, true), at(g), updated(m, has_m), updated(v, has_v), moments, end - begin};
    l.scalars = {scale.f32(), lr.f32(), step.device.as<int64_t>()};
    const std::vector<DrawRange> ranges = part_of(ranges_of(n), begin, end);
    const auto bytes = ranges.size() * sizeof(DrawRange);
    l.ranges = DeviceBuffer(static_cast<int64_t>(bytes));
    require(cudaMemcpy(l.ranges.data(), ranges.data(), bytes, cudaMemcpyHostToDevice), "copy");
    l.draws = {l.ranges.as<DrawRange>(), static_cast<int>(ranges.size()), rounding.device.as<int64_t>()};
    if (begin == 0) {
      l.edges = values(DType::kI64, edges);
      l.no_decay = {l.edges.device.as<int64_t>(), static_cast<int>(edges.size())};
    }
    return l;
  }
};

struct Expected {
  std::vector<double> p, m, v;
};

double rounded(float x, const DrawRange& range, int64_t i, int result) {
  const lockstep::Philox random(static_cast<uint64_t>(kSeed),
                                lockstep::rounding_stream(range.keys[result], kPosition));
  return lockstep::round_stochastically(x, random.bits(static_cast<uint64_t>(range.first + i - range.begin)));
}

Expected expected_of(const State& x, const Rule& rule) {
  Expected e{x.p.host, x.m.host, x.v.host};
  const std::vector<DrawRange> ranges = ranges_of(x.n);
  size_t range = 0;
  for (int64_t i = 0; i < x.n; ++i) {
    while (range + 1 < ranges.size() && ranges[range + 1].begin <= i) ++range;
    const auto at = static_cast<size_t>(i + x.offset);
    const bool decays = !((i >= 100 && i < 300) || (i >= 1001 && i < 1003));
    const Element now = rule({to_f32(x.p.host[at]), to_f32(x.m.host[at]), to_f32(x.v.host[at])},
                             to_f32(x.g.host[at]), decays);
    const bool narrow = x.moments == DType::kBF16;
    e.p[at] = rounded(now.p, ranges[range], i, 0);
    if (x.has_m) e.m[at] = narrow ? rounded(now.m, ranges[range], i, 1) : double{now.m};
    if (x.has_v) e.v[at] = narrow ? rounded(now.v, ranges[range], i, 2) : double{now.v};
  }
  return e;
}

using Run = std::function<void(const State::Launch&)>;

// The whole buffer in one launch, and in two parts.
void check_update(Checks& c, const std::string& name, State& x, const Rule& rule, const Run& run) {
  const Expected want = expected_of(x, rule);
  const std::vector<Result> results{{&x.p, &want.p, "p"}, {&x.m, &want.m, "m"}, {&x.v, &want.v, "v"}};
  const State::Launch whole = x.launch(0, x.n);
  const int64_t middle = std::min<int64_t>(x.n, 8192);
  const State::Launch first = x.launch(0, middle), second = x.launch(middle, x.n);
  c.check(
      name, results, 0, [&] { run(whole); }, [&] { x.reset(); });
  c.check(
      name + " in parts", results, 0, [&] { run(first), run(second); }, [&] { x.reset(); });
}

void check_rules(Checks& c, int64_t n, DType moments, int64_t offset) {
  const AdamAttributes a{0.9, 0.95, 1e-8, 0.1};
  const std::string with = std::string(" rounded, ") + std::string(lockstep::name_of(moments)) +
                           " moments, " + std::to_string(n) + (offset > 0 ? ", from an odd address" : "");
  for (const bool decoupled : {false, true}) {
    State x(n, moments, true, true, offset);
    check_update(c, (decoupled ? "adamw" : "adam") + with, x, adam_rule(a, decoupled, x.s(), x.rate(), 5),
                 [&](const State::Launch& l) {
                   rounded_adam(c.stream, l.state, l.scalars, l.no_decay, l.draws, a, decoupled);
                 });
  }
  State x(n, moments, true, false, offset);
  check_update(c, "lion" + with, x, lion_rule(a, x.s(), x.rate()), [&](const State::Launch& l) {
    rounded_lion(c.stream, l.state, l.scalars, l.no_decay, l.draws, a);
  });
  for (const int mode : {0, 1, 2}) {
    State y(n, moments, mode > 0, false, offset);
    check_update(c,
                 (mode == 0   ? "sgd"
                  : mode == 1 ? "sgd momentum"
                              : "sgd nesterov") +
                     with,
                 y, sgd_rule(mode > 0, 0.9f, mode == 2, 0.1f, y.s(), y.rate()), [&](const State::Launch& l) {
                   rounded_sgd(c.stream, l.state, l.scalars, l.no_decay, l.draws, 0.9f, mode == 2, 0.1f);
                 });
  }
}

}  // namespace

void check_rounded(Checks& c) {
  for (const DType moments : {DType::kF32, DType::kBF16}) {
    check_rules(c, 20003, moments, 0);
    check_rules(c, 20003, moments, 1);
  }
  // Enough that a block takes runs of several turns.
  const AdamAttributes a{0.9, 0.95, 1e-8, 0.1};
  State x(5'000'003, DType::kF32, true, true);
  check_update(c, "adamw rounded, 5000003", x, adam_rule(a, true, x.s(), x.rate(), 5),
               [&](const State::Launch& l) {
                 rounded_adam(c.stream, l.state, l.scalars, l.no_decay, l.draws, a, true);
               });
}

}  // namespace kernel_check
