#include "backend/cuda/kernels/channel_norm.h"
#include "backend/cuda/kernels/pool.h"
#include "kernel_check.h"

namespace kernel_check {
namespace {

using namespace lockstep::cuda;

size_t at(int64_t i) { return static_cast<size_t>(i); }

void check_batch_norm(Checks& c, DType dtype, bool training, bool relu, int64_t rows, int64_t C) {
  const Tensor x = random_tensor(dtype, rows * C, 81, 2, 4), dy = random_tensor(dtype, rows * C, 82);
  const Tensor weight = random_tensor(DType::kF32, C, 83, 0.5, 1.5), bias = random_tensor(DType::kF32, C, 84);
  const Tensor rm = random_tensor(DType::kF32, C, 85, 2.5, 3.5),
               rv = random_tensor(DType::kF32, C, 86, 0.2, 0.5);
  Tensor y = tensor(dtype, rows * C), mean = tensor(DType::kF32, C), rstd = tensor(DType::kF32, C),
         variance = tensor(DType::kF32, C);
  Tensor dx = tensor(dtype, rows * C), dw = tensor(DType::kF32, C), db = tensor(DType::kF32, C);
  std::vector<double> y_w(x.host.size()), mean_w(at(C)), rstd_w(at(C)), var_w(at(C)), dx_w(x.host.size()),
      dw_w(at(C)), db_w(at(C));
  const double n = static_cast<double>(rows);
  for (int64_t k = 0; k < C; ++k) {
    double m = training ? 0 : rm[k], v = training ? 0 : rv[k];
    if (training) {
      for (int64_t r = 0; r < rows; ++r) m += x[r * C + k] / n;
      for (int64_t r = 0; r < rows; ++r) v += (x[r * C + k] - m) * (x[r * C + k] - m) / n;
      var_w[at(k)] = v * n / (n - 1);
    }
    mean_w[at(k)] = m;
    rstd_w[at(k)] = 1 / std::sqrt(v + 1e-5);
    for (int64_t r = 0; r < rows; ++r) {
      const double value = (x[r * C + k] - m) * rstd_w[at(k)] * weight[k] + bias[k];
      y_w[at(r * C + k)] = relu && value < 0 ? 0 : value;
    }
  }
  const Tensor means = values(DType::kF32, mean_w), rstds = values(DType::kF32, rstd_w);
  for (int64_t k = 0; k < C; ++k) {
    const auto h = [&](int64_t r) { return (x[r * C + k] - means[k]) * rstds[k]; };
    const auto open = [&](int64_t r) {
      // In the kernel's precision, so that elements at the edge of the relu fall on the same side.
      const float hf =
          (static_cast<float>(x[r * C + k]) - static_cast<float>(means[k])) * static_cast<float>(rstds[k]);
      return relu && std::fmaf(hf, static_cast<float>(weight[k]), static_cast<float>(bias[k])) <= 0
                 ? 0.0
                 : dy[r * C + k];
    };
    for (int64_t r = 0; r < rows; ++r) dw_w[at(k)] += open(r) * h(r), db_w[at(k)] += open(r);
    for (int64_t r = 0; r < rows; ++r)
      dx_w[at(r * C + k)] =
          weight[k] * rstds[k] * (open(r) - (training ? 1 / n : 0.0) * (db_w[at(k)] + h(r) * dw_w[at(k)]));
  }
  const ChannelNormShape shape{rows, C, dtype, true, training, relu};
  DeviceBuffer workspace(channel_norm_workspace(shape));
  const std::string name = "batch_norm " + std::string(lockstep::name_of(dtype)) +
                           (training ? " training" : "") + (relu ? " relu" : "") + " " +
                           std::to_string(rows) + "x" + std::to_string(C);
  std::vector<Result> results{{&y, &y_w, "y"}, {&mean, &mean_w, "mean"}, {&rstd, &rstd_w, "rstd"}};
  if (training) results.push_back({&variance, &var_w, "variance"});
  c.check(name, results, bound_of(dtype), [&] {
    channel_norm(c.stream, shape,
                 {x.data(), weight.data(), bias.data(), rm.f32(), rv.f32(), y.data(), mean.f32(), rstd.f32(),
                  variance.f32(), 1e-5},
                 workspace.data());
  });
  c.check(name + " grad", {{&dx, &dx_w, "dx"}, {&dw, &dw_w, "dweight"}, {&db, &db_w, "dbias"}},
          2 * bound_of(dtype), [&] {
            channel_norm_grad(c.stream, shape,
                              {dy.data(), x.data(), weight.data(), bias.data(), means.f32(), rstds.f32(),
                               dx.data(), dw.data(), db.data()},
                              workspace.data());
          });
}

void check_pools(Checks& c, DType dtype, int64_t kernel, int64_t stride, int64_t padding) {
  PoolShape s;
  s.images = 2, s.rows = 11, s.columns = 9, s.channels = 5, s.dtype = dtype;
  for (int axis = 0; axis < 2; ++axis)
    s.kernel[axis] = kernel, s.stride[axis] = stride, s.before[axis] = padding;
  s.out_rows = (s.rows + 2 * padding - kernel) / stride + 1;
  s.out_columns = (s.columns + 2 * padding - kernel) / stride + 1;
  const int64_t in = s.images * s.rows * s.columns * s.channels,
                out = s.images * s.out_rows * s.out_columns * s.channels;
  const Tensor x = random_tensor(dtype, in, 87), dy = random_tensor(dtype, out, 88);
  Tensor y = tensor(dtype, out), dx = tensor(dtype, in);
  std::vector<double> max_w(at(out)), avg_w(at(out)), dmax(at(in)), davg(at(in));
  for (int64_t o = 0; o < out; ++o) {
    const int64_t k = o % s.channels, ow = o / s.channels % s.out_columns,
                  oh = o / s.channels / s.out_columns % s.out_rows,
                  n = o / s.channels / s.out_columns / s.out_rows;
    std::vector<int64_t> seen;
    for (int64_t r = 0; r < kernel; ++r)
      for (int64_t q = 0; q < kernel; ++q) {
        const int64_t ih = oh * stride - padding + r, iw = ow * stride - padding + q;
        if (ih >= 0 && ih < s.rows && iw >= 0 && iw < s.columns)
          seen.push_back(((n * s.rows + ih) * s.columns + iw) * s.channels + k);
      }
    int64_t best = seen[0];
    for (const int64_t i : seen) {
      if (x[i] > x[best]) best = i;
      avg_w[at(o)] += x[i] / static_cast<double>(seen.size());
      davg[at(i)] += dy[o] / static_cast<double>(seen.size());
    }
    max_w[at(o)] = x[best];
    dmax[at(best)] += dy[o];
  }
  const std::string name = std::string(lockstep::name_of(dtype)) + " k" + std::to_string(kernel) + " s" +
                           std::to_string(stride) + " p" + std::to_string(padding);
  Tensor index = tensor(DType::kI32, y.count());
  c.check("max_pool2d " + name, {{&y, &max_w, "y"}}, 0,
          [&] { max_pool2d(c.stream, s, x.data(), y.data(), index.device.as<int32_t>()); });
  c.check("max_pool2d_grad " + name, {{&dx, &dmax, "dx"}}, bound_of(dtype),
          [&] { max_pool2d_grad(c.stream, s, dy.data(), index.device.as<int32_t>(), dx.data()); });
  c.check("avg_pool2d " + name, {{&y, &avg_w, "y"}}, bound_of(dtype),
          [&] { avg_pool2d(c.stream, s, x.data(), y.data()); });
  c.check("avg_pool2d_grad " + name, {{&dx, &davg, "dx"}}, bound_of(dtype),
          [&] { avg_pool2d_grad(c.stream, s, dy.data(), dx.data()); });
}

}  // namespace

void check_images(Checks& c) {
  for (const DType dtype : kFloating) {
    check_batch_norm(c, dtype, true, false, 700, 64);
    check_batch_norm(c, dtype, true, true, 3000, 24);
    check_batch_norm(c, dtype, false, true, 77, 33);
    check_pools(c, dtype, 3, 2, 1);
    check_pools(c, dtype, 2, 2, 0);
    check_pools(c, dtype, 3, 1, 1);
  }
}

}  // namespace kernel_check
