#include "backend/cuda/kernels/row_norm.h"
#include "backend/cuda/kernels/softmax.h"
#include "kernel_check.h"

namespace kernel_check {
namespace {

using namespace lockstep::cuda;

size_t at(int64_t i) { return static_cast<size_t>(i); }

void check_norm(Checks& c, DType dtype, bool float_parameters, bool centered, bool residual, int64_t rows,
                int64_t C) {
  const DType parameter = float_parameters ? DType::kF32 : dtype;
  const Tensor x = random_tensor(dtype, rows * C, 41, -1, 2), r = random_tensor(dtype, rows * C, 42);
  const Tensor weight = random_tensor(parameter, C, 43, 0.5, 1.5), bias = random_tensor(parameter, C, 44);
  const Tensor dy = random_tensor(dtype, rows * C, 45);
  Tensor sum = tensor(dtype, rows * C), y = tensor(dtype, rows * C), mean = tensor(DType::kF32, rows),
         rstd = tensor(DType::kF32, rows);
  std::vector<double> sum_w(x.host.size()), y_w(x.host.size()), mean_w(at(rows)), rstd_w(at(rows));
  const double n = static_cast<double>(C), epsilon = 1e-5;
  for (int64_t i = 0; i < rows; ++i) {
    double m = 0, v = 0;
    for (int64_t k = 0; k < C; ++k) {
      const double s = residual
                           ? lockstep::round_to(dtype, static_cast<double>(static_cast<float>(x[i * C + k]) +
                                                                           static_cast<float>(r[i * C + k])))
                           : x[i * C + k];
      sum_w[at(i * C + k)] = s;
      if (centered) m += s / n;
    }
    for (int64_t k = 0; k < C; ++k) v += (sum_w[at(i * C + k)] - m) * (sum_w[at(i * C + k)] - m) / n;
    mean_w[at(i)] = m;
    rstd_w[at(i)] = 1 / std::sqrt(v + epsilon);
    for (int64_t k = 0; k < C; ++k)
      y_w[at(i * C + k)] =
          (sum_w[at(i * C + k)] - m) * rstd_w[at(i)] * weight[k] + (centered ? bias[k] : 0.0);
  }
  const RowNormShape shape{rows, C, dtype, float_parameters, centered};
  const std::string name = std::string(centered ? "layer_norm " : "rms_norm ") +
                           std::string(lockstep::name_of(dtype)) +
                           (float_parameters ? " f32 parameters" : "") + (residual ? " residual" : "") + " " +
                           std::to_string(rows) + "x" + std::to_string(C);
  std::vector<Result> results{{&y, &y_w, "y"}, {&rstd, &rstd_w, "rstd"}};
  if (centered) results.push_back({&mean, &mean_w, "mean"});
  if (residual) results.push_back({&sum, &sum_w, "sum"});
  c.check(name, results, bound_of(dtype), [&] {
    row_norm(c.stream, shape,
             {x.data(), residual ? r.data() : nullptr, weight.data(), bias.data(), sum.data(), y.data(),
              mean.f32(), rstd.f32(), static_cast<float>(epsilon)});
  });
  // The gradient, of x as it is.
  Tensor dx = tensor(dtype, rows * C), dw = tensor(parameter, C), db = tensor(parameter, C);
  std::vector<double> dx_w(x.host.size()), dw_w(at(C)), db_w(at(C)), m0(at(rows)), s0(at(rows));
  for (int64_t i = 0; i < rows; ++i) {
    double m = 0, v = 0;
    if (centered)
      for (int64_t k = 0; k < C; ++k) m += x[i * C + k] / n;
    for (int64_t k = 0; k < C; ++k) v += (x[i * C + k] - m) * (x[i * C + k] - m) / n;
    m0[at(i)] = m;
    s0[at(i)] = 1 / std::sqrt(v + epsilon);
  }
  const Tensor means = values(DType::kF32, m0), rstds = values(DType::kF32, s0);
  for (int64_t i = 0; i < rows; ++i) {
    double mg = 0, mgh = 0;
    for (int64_t k = 0; k < C; ++k) {
      const double h = (x[i * C + k] - means[i]) * rstds[i], g = dy[i * C + k] * weight[k];
      if (centered) mg += g / n;
      mgh += g * h / n;
      dw_w[at(k)] += dy[i * C + k] * h;
      db_w[at(k)] += dy[i * C + k];
    }
    for (int64_t k = 0; k < C; ++k) {
      const double h = (x[i * C + k] - means[i]) * rstds[i];
      dx_w[at(i * C + k)] =
          rstds[i] * (dy[i * C + k] * weight[k] - mg - h * mgh) + (residual ? r[i * C + k] : 0.0);
    }
  }
  DeviceBuffer workspace(row_norm_grad_workspace(shape));
  std::vector<Result> gradients{{&dx, &dx_w, "dx"}, {&dw, &dw_w, "dweight"}};
  if (centered) gradients.push_back({&db, &db_w, "dbias"});
  c.check(name + " grad", gradients, 2 * bound_of(dtype), [&] {
    row_norm_grad(c.stream, shape,
                  {dy.data(), x.data(), weight.data(), means.f32(), rstds.f32(),
                   residual ? r.data() : nullptr, dx.data(), dw.data(), db.data()},
                  workspace.data());
  });
}

void check_softmax(Checks& c, DType dtype, bool logarithm, const ReducedShape& s) {
  const Tensor x = random_tensor(dtype, s.outer * s.reduced * s.inner, 46, -5, 5),
               dy = random_tensor(dtype, x.count(), 47);
  Tensor y = tensor(dtype, x.count()), dx = tensor(dtype, x.count());
  std::vector<double> want(x.host.size()), dwant(x.host.size());
  for (int64_t o = 0; o < s.outer; ++o)
    for (int64_t i = 0; i < s.inner; ++i) {
      const auto place = [&](int64_t r) { return at((o * s.reduced + r) * s.inner + i); };
      double sum = 0;
      for (int64_t r = 0; r < s.reduced; ++r) sum += std::exp(x.host[place(r)]);
      for (int64_t r = 0; r < s.reduced; ++r)
        want[place(r)] = logarithm ? x.host[place(r)] - std::log(sum) : std::exp(x.host[place(r)]) / sum;
    }
  const Tensor result = values(dtype, want);
  for (int64_t o = 0; o < s.outer; ++o)
    for (int64_t i = 0; i < s.inner; ++i) {
      const auto place = [&](int64_t r) { return at((o * s.reduced + r) * s.inner + i); };
      double sum = 0;
      for (int64_t r = 0; r < s.reduced; ++r)
        sum += (logarithm ? 1.0 : result.host[place(r)]) * dy.host[place(r)];
      for (int64_t r = 0; r < s.reduced; ++r)
        dwant[place(r)] = logarithm ? dy.host[place(r)] - std::exp(result.host[place(r)]) * sum
                                    : result.host[place(r)] * (dy.host[place(r)] - sum);
    }
  const std::string name = std::string(logarithm ? "log_softmax " : "softmax ") +
                           std::string(lockstep::name_of(dtype)) + " " + std::to_string(s.outer) + "x" +
                           std::to_string(s.reduced) + "x" + std::to_string(s.inner);
  c.check(name, {{&y, &want, "y"}}, bound_of(dtype),
          [&] { softmax(c.stream, s, dtype, logarithm, x.data(), y.data()); });
  c.check(name + " grad", {{&dx, &dwant, "dx"}}, 2 * bound_of(dtype),
          [&] { softmax_grad(c.stream, s, dtype, logarithm, result.data(), dy.data(), dx.data()); });
}

}  // namespace

void check_rows(Checks& c) {
  for (const DType dtype : kFloating)
    for (const bool centered : {true, false}) {
      for (const int64_t C : {64, 128, 256, 768, 1600, 2048, 4096, 100, 9})
        check_norm(c, dtype, false, centered, C == 768 || C == 100, 301, C);
      check_norm(c, dtype, true, centered, true, 530, 768);
      check_norm(c, dtype, true, centered, false, 3, 8192);
      check_norm(c, dtype, false, centered, true, 7, 20000);
    }
  for (const DType dtype : kFloating)
    for (const bool logarithm : {false, true})
      for (const ReducedShape& s :
           {ReducedShape{65, 128, 1}, ReducedShape{5, 1000, 1}, ReducedShape{9, 77, 1},
            ReducedShape{2, 30000, 1}, ReducedShape{3, 40, 33}})
        check_softmax(c, dtype, logarithm, s);
}

}  // namespace kernel_check
