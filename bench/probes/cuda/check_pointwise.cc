#include "backend/cuda/kernels/pointwise.h"
#include "backend/cuda/kernels/random.h"
#include "backend/cuda/kernels/rope.h"
#include "backend/cuda/kernels/tree_sum.h"
#include "kernel_check.h"
#include "ops/dropout_stream.h"
#include "ops/stochastic_rounding.h"

namespace kernel_check {
namespace {

using namespace lockstep::cuda;
using Function = PointwiseFunction;

double gelu_tanh(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}
double gelu_erf(double x) { return 0.5 * x * std::erfc(-x / std::sqrt(2.0)); }
double silu(double x) { return x / (1 + std::exp(-x)); }
double silu_slope(double x) {
  const double s = 1 / (1 + std::exp(-x));
  return s * (1 + x * (1 - s));
}
double gelu_tanh_slope(double x) {
  const double k = std::sqrt(2 / M_PI), t = std::tanh(k * (x + 0.044715 * x * x * x));
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * k * (1 + 3 * 0.044715 * x * x);
}
double gelu_erf_slope(double x) {
  return 0.5 * std::erfc(-x / std::sqrt(2.0)) + x * std::exp(-0.5 * x * x) / std::sqrt(2 * M_PI);
}

struct Unary {
  const char* name;
  Function function;
  double (*reference)(double);
  bool positive;
};
const Unary kUnary[] = {
    {"copy", Function::copy, [](double x) { return x; }, false},
    {"neg", Function::neg, [](double x) { return -x; }, false},
    {"abs", Function::abs, [](double x) { return std::fabs(x); }, false},
    {"sign", Function::sign, [](double x) { return x > 0   ? 1.0
                                                   : x < 0 ? -1.0
                                                           : 0.0; }, false},
    {"sqrt", Function::sqrt, [](double x) { return std::sqrt(x); }, true},
    {"rsqrt", Function::rsqrt, [](double x) { return 1 / std::sqrt(x); }, true},
    {"exp", Function::exp, [](double x) { return std::exp(x); }, false},
    {"log", Function::log, [](double x) { return std::log(x); }, true},
    {"tanh", Function::tanh, [](double x) { return std::tanh(x); }, false},
    {"erf", Function::erf, [](double x) { return std::erf(x); }, false},
    {"sigmoid", Function::sigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }, false},
    {"relu", Function::relu, [](double x) { return x < 0 ? 0.0 : x; }, false},
    {"silu", Function::silu, silu, false},
    {"gelu_erf", Function::gelu_erf, gelu_erf, false},
    {"gelu_tanh", Function::gelu_tanh, gelu_tanh, false},
};
struct Binary {
  const char* name;
  Function function;
  double (*reference)(double, double);
};
const Binary kBinary[] = {
    {"add", Function::add, [](double a, double b) { return a + b; }},
    {"sub", Function::sub, [](double a, double b) { return a - b; }},
    {"mul", Function::mul, [](double a, double b) { return a * b; }},
    {"div", Function::div, [](double a, double b) { return a / b; }},
    {"minimum", Function::minimum, [](double a, double b) { return std::fmin(a, b); }},
    {"maximum", Function::maximum, [](double a, double b) { return std::fmax(a, b); }},
    {"pow", Function::pow, [](double a, double b) { return std::pow(a, b); }},
    {"silu_grad", Function::silu_grad, [](double x, double dy) { return dy * silu_slope(x); }},
    {"gelu_erf_grad", Function::gelu_erf_grad, [](double x, double dy) { return dy * gelu_erf_slope(x); }},
    {"gelu_tanh_grad", Function::gelu_tanh_grad, [](double x, double dy) { return dy * gelu_tanh_slope(x); }},
};

std::string dtype_name(DType d) { return std::string(lockstep::name_of(d)); }

void check_gated(Checks& c, DType dtype, Gate gate, int64_t width) {
  const int64_t rows = 37;
  const Tensor x = random_tensor(dtype, rows * 2 * width, 5, -4, 4),
               dy = random_tensor(dtype, rows * width, 6);
  Tensor y = tensor(dtype, rows * width), dx = tensor(dtype, rows * 2 * width);
  std::vector<double> want(y.host.size()), dwant(dx.host.size());
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t i = 0; i < width; ++i) {
      const double g = x[r * 2 * width + i], up = x[r * 2 * width + width + i], d = dy[r * width + i];
      const double f = gate == Gate::kSilu ? silu(g) : gate == Gate::kGeluTanh ? gelu_tanh(g) : gelu_erf(g);
      const double slope = gate == Gate::kSilu       ? silu_slope(g)
                           : gate == Gate::kGeluTanh ? gelu_tanh_slope(g)
                                                     : gelu_erf_slope(g);
      want[static_cast<size_t>(r * width + i)] = f * up;
      dwant[static_cast<size_t>(r * 2 * width + i)] = slope * d * up;
      dwant[static_cast<size_t>(r * 2 * width + width + i)] = d * f;
    }
  const std::string name = "gated " + std::to_string(static_cast<int>(gate)) + " " + dtype_name(dtype) +
                           " width " + std::to_string(width);
  c.check(name, {{&y, &want, "y"}}, 2 * bound_of(dtype),
          [&] { gated(c.stream, gate, dtype, x.data(), y.data(), rows, width); });
  c.check(name + " grad", {{&dx, &dwant, "dx"}}, 2 * bound_of(dtype),
          [&] { gated_grad(c.stream, gate, dtype, x.data(), dy.data(), dx.data(), rows, width); });
}

void check_rope(Checks& c, DType dtype, bool interleaved, int64_t rotary, bool given, bool inverse) {
  const int64_t B = 2, T = 9, H = 5, D = 32, pairs = rotary / 2, turned = 4;
  const Tensor x = random_tensor(dtype, B * T * H * D, 7);
  std::vector<double> positions;
  for (int64_t i = 0; i < B * T; ++i) positions.push_back(given ? double((i * 5) % 11) : double(i % T));
  const Tensor place = values(DType::kI32, positions);
  std::vector<double> cosine, sine;
  for (int64_t p = 0; p < 16; ++p)
    for (int64_t i = 0; i < pairs; ++i) {
      const double angle =
          static_cast<double>(p) * std::pow(10000.0, -static_cast<double>(i) / static_cast<double>(pairs));
      cosine.push_back(std::cos(angle));
      sine.push_back(std::sin(angle));
    }
  const Tensor tc = values(DType::kF32, cosine), ts = values(DType::kF32, sine);
  Tensor y = tensor(dtype, x.count());
  std::vector<double> want = x.host;
  for (int64_t t = 0; t < B * T; ++t)
    for (int64_t h = 0; h < turned; ++h)
      for (int64_t i = 0; i < pairs; ++i) {
        const int64_t row = (t * H + h) * D, a = row + (interleaved ? 2 * i : i),
                      b = row + (interleaved ? 2 * i + 1 : i + pairs);
        const auto p = static_cast<int64_t>(positions[static_cast<size_t>(t)]) * pairs + i;
        const double co = tc[p], si = inverse ? -ts[p] : ts[p];
        want[static_cast<size_t>(a)] = x[a] * co - x[b] * si;
        want[static_cast<size_t>(b)] = x[b] * co + x[a] * si;
      }
  const RopeShape shape{B * T, T, H, turned, D, rotary, interleaved, inverse, dtype};
  c.check("rope " + dtype_name(dtype) + (interleaved ? " interleaved" : " halves") + " rotary " +
              std::to_string(rotary) + (given ? " positions" : "") + (inverse ? " inverse" : ""),
          {{&y, &want, "y"}}, bound_of(dtype), [&] {
            rope(c.stream, shape, x.data(), given ? place.device.as<int32_t>() : nullptr, tc.f32(), ts.f32(),
                 y.data());
          });
}

void check_random(Checks& c) {
  const int64_t n = 4099;
  const Tensor rng = values(DType::kI64, {123456789, 77});
  for (const DType dtype : kFloating) {
    const Tensor x = random_tensor(dtype, n, 8);
    Tensor y = tensor(dtype, n);
    const lockstep::Philox random(123456789, lockstep::dropout_stream(42, 77));
    std::vector<double> want(x.host.size());
    for (int64_t i = 0; i < n; ++i)
      want[static_cast<size_t>(i)] =
          random.bernoulli(static_cast<uint64_t>(i), 0.3)
              ? 0.0
              : lockstep::round_to(
                    dtype, static_cast<double>(static_cast<float>(x[i]) * lockstep::dropout_scale(0.3)));
    c.check("dropout " + dtype_name(dtype), {{&y, &want, "y"}}, 0,
            [&] { dropout(c.stream, dtype, x.data(), rng.device.as<int64_t>(), 42, 0.3, y.data(), n); });
  }
  const Tensor x = random_tensor(DType::kF32, n, 9);
  Tensor y = tensor(DType::kBF16, n);
  const lockstep::Philox random(123456789, lockstep::rounding_stream(7, 77));
  std::vector<double> want;
  for (int64_t i = 0; i < n; ++i)
    want.push_back(
        lockstep::round_stochastically(static_cast<float>(x[i]), random.bits(static_cast<uint64_t>(i))));
  c.check("round_stochastic", {{&y, &want, "y"}}, 0,
          [&] { round_stochastic(c.stream, x.f32(), rng.device.as<int64_t>(), 7, y.data(), n); });
}

void check_tree(Checks& c, DType dtype, int sources, bool round_nodes) {
  const int64_t n = 1003;
  std::vector<Tensor> parts;
  TreeSources list{{}, sources};
  for (int s = 0; s < sources; ++s) {
    parts.push_back(random_tensor(dtype, n, 20 + static_cast<uint64_t>(s)));
    list.address[s] = parts.back().data();
  }
  std::vector<double> want;
  for (int64_t i = 0; i < n; ++i) {
    std::vector<float> v;
    for (const Tensor& part : parts) v.push_back(static_cast<float>(part[i]));
    for (int d = 1; d < sources; d *= 2)
      for (int s = 0; s + d < sources; s += 2 * d) {
        v[static_cast<size_t>(s)] += v[static_cast<size_t>(s + d)];
        if (round_nodes)
          v[static_cast<size_t>(s)] =
              static_cast<float>(lockstep::round_to(dtype, v[static_cast<size_t>(s)]));
      }
    want.push_back(lockstep::round_to(dtype, v[0]));
  }
  Tensor out = tensor(dtype, n);
  c.check(
      "tree_sum " + dtype_name(dtype) + " of " + std::to_string(sources) + (round_nodes ? " rounded" : ""),
      {{&out, &want, "sum"}}, 0, [&] { tree_sum(c.stream, dtype, list, round_nodes, out.data(), n); });
}

// Sums over 4, 1, 1, 2 and 4 of twelve leaves.
void check_merges(Checks& c, DType dtype, bool round_nodes) {
  const int64_t n = 1003;
  const unsigned char merges[] = {0, 0, 1, 2, 1};
  std::vector<Tensor> parts;
  TreeSources list{{}, 5};
  for (int s = 0; s < 5; ++s) {
    parts.push_back(random_tensor(dtype, n, 50 + static_cast<uint64_t>(s)));
    list.address[s] = parts.back().data();
    list.merges[s] = merges[s];
  }
  const auto add = [&](float left, float right) {
    const float sum = left + right;
    return round_nodes ? static_cast<float>(lockstep::round_to(dtype, sum)) : sum;
  };
  std::vector<double> want;
  for (int64_t i = 0; i < n; ++i) {
    const auto at = [&](size_t s) { return static_cast<float>(parts[s][i]); };
    want.push_back(lockstep::round_to(dtype, add(add(at(0), add(add(at(1), at(2)), at(3))), at(4))));
  }
  Tensor out = tensor(dtype, n);
  c.check("tree_sum " + dtype_name(dtype) + " of parts" + (round_nodes ? " rounded" : ""),
          {{&out, &want, "sum"}}, 0, [&] { tree_sum(c.stream, dtype, list, round_nodes, out.data(), n); });
}

}  // namespace

void check_pointwise(Checks& c) {
  const int64_t n = 70001;
  for (const DType dtype : kFloating) {
    for (const Unary& u : kUnary) {
      const Tensor x = random_tensor(dtype, n, 1, u.positive ? 0.01 : -6, 6);
      Tensor y = tensor(dtype, n);
      std::vector<double> want;
      for (const double v : x.host) want.push_back(u.reference(v));
      c.check(std::string("unary ") + u.name + " " + dtype_name(dtype), {{&y, &want, "y"}}, bound_of(dtype),
              [&] { unary(c.stream, u.function, dtype, x.data(), y.data(), n); });
    }
    for (const Binary& b : kBinary)
      for (const Operand operand : {Operand::kFull, Operand::kScalar, Operand::kRow}) {
        const int64_t row = 56, count = row * 1000;
        const bool positive = b.function == Function::pow || b.function == Function::div;
        const Tensor x = random_tensor(dtype, count, 2, positive ? 0.2 : -4, 4);
        const Tensor y = random_tensor(dtype,
                                       operand == Operand::kFull  ? count
                                       : operand == Operand::kRow ? row
                                                                  : 1,
                                       3, positive ? 0.2 : -2, 2);
        Tensor out = tensor(dtype, count);
        std::vector<double> want;
        for (int64_t i = 0; i < count; ++i) want.push_back(b.reference(x[i], y[i % y.count()]));
        c.check(std::string("binary ") + b.name + " " + dtype_name(dtype) + " " +
                    std::to_string(static_cast<int>(operand)),
                {{&out, &want, "y"}}, bound_of(dtype), [&] {
                  binary(c.stream, b.function, dtype, x.data(), y.data(), operand, row, out.data(), count);
                });
      }
    for (const DType to : kFloating) {
      const Tensor x = random_tensor(dtype, 10007, 4, -100, 100);
      Tensor y = tensor(to, x.count());
      std::vector<double> want;
      for (const double v : x.host) want.push_back(lockstep::round_to(to, v));
      c.check("cast " + dtype_name(dtype) + " to " + dtype_name(to), {{&y, &want, "y"}}, 0,
              [&] { cast(c.stream, dtype, x.data(), to, y.data(), x.count()); });
    }
    for (const Gate gate : {Gate::kSilu, Gate::kGeluTanh, Gate::kGeluErf})
      for (const int64_t width : {264, 33}) check_gated(c, dtype, gate, width);
    check_rope(c, dtype, false, 32, false, false);
    check_rope(c, dtype, false, 16, true, true);
    check_rope(c, dtype, true, 24, true, false);
    for (const int sources : {1, 2, 3, 5, 8, 16}) check_tree(c, dtype, sources, dtype != DType::kF32);
    check_tree(c, dtype, 7, false);
    check_merges(c, dtype, dtype != DType::kF32);
  }
  check_random(c);
}

}  // namespace kernel_check
