#include "backend/cuda/kernels/losses.h"
#include "kernel_check.h"

namespace kernel_check {
namespace {

using namespace lockstep::cuda;

size_t at(int64_t i) { return static_cast<size_t>(i); }

void check_cross_entropy(Checks& c, DType dtype, int64_t rows, int64_t V, double smoothing) {
  const Tensor x = random_tensor(dtype, rows * V, 51, -6, 6);
  Draw draw(52);
  std::vector<double> ids;
  for (int64_t r = 0; r < rows; ++r) ids.push_back(r % 7 == 3 ? -100.0 : static_cast<double>(draw.below(V)));
  const Tensor labels = values(DType::kI32, ids);
  const Tensor scale = values(DType::kF32, {0.25});
  Tensor loss = tensor(DType::kF32, 1), count = tensor(DType::kI64, 1), lse = tensor(DType::kF32, rows),
         dx = tensor(dtype, rows * V);
  std::vector<double> loss_w(1), count_w(1), lse_w(at(rows)), dx_w(x.host.size());
  for (int64_t r = 0; r < rows; ++r) {
    const auto label = static_cast<int64_t>(ids[at(r)]);
    if (label == -100) continue;
    double sum = 0, mean = 0;
    for (int64_t i = 0; i < V; ++i)
      sum += std::exp(x[r * V + i]), mean += x[r * V + i] / static_cast<double>(V);
    lse_w[at(r)] = std::log(sum);
    loss_w[0] += lse_w[at(r)] - (1 - smoothing) * x[r * V + label] - smoothing * mean;
    count_w[0] += 1;
    for (int64_t i = 0; i < V; ++i)
      dx_w[at(r * V + i)] =
          scale[0] * (std::exp(x[r * V + i] - lse_w[at(r)]) - (i == label ? 1 - smoothing : 0.0) -
                      smoothing / static_cast<double>(V));
  }
  const CrossEntropyShape shape{rows, V, dtype, -100, static_cast<float>(smoothing)};
  DeviceBuffer workspace(cross_entropy_workspace(shape)), bad(8);
  require(cudaMemset(bad.data(), 0x7f, 8), "memset");
  const std::string name = "cross_entropy " + std::string(lockstep::name_of(dtype)) + " " +
                           std::to_string(rows) + "x" + std::to_string(V) +
                           (smoothing > 0 ? " smoothed" : "");
  c.check(name, {{&loss, &loss_w, "loss"}, {&count, &count_w, "count"}, {&lse, &lse_w, "lse"}}, 1e-5, [&] {
    cross_entropy(c.stream, shape, x.data(), labels.device.as<int32_t>(), loss.f32(),
                  count.device.as<int64_t>(), lse.f32(), bad.as<BadLabel>(), workspace.data());
  });
  const Tensor known = values(DType::kF32, lse_w);
  c.check(name + " grad", {{&dx, &dx_w, "dlogits"}}, bound_of(dtype) * 1.5, [&] {
    cross_entropy_grad(c.stream, shape, scale.f32(), x.data(), labels.device.as<int32_t>(), known.f32(),
                       dx.data());
  });
  const auto prepare = [&] {
    loss.upload();
    count.upload();
    require(cudaMemcpy(dx.data(), x.data(), static_cast<size_t>(dx.device.bytes()), cudaMemcpyDeviceToDevice),
            "copy");
  };
  c.check(
      name + " in place", {{&dx, &dx_w, "dlogits"}, {&loss, &loss_w, "loss"}, {&count, &count_w, "count"}},
      bound_of(dtype) * 1.5,
      [&] {
        cross_entropy_in_place(c.stream, shape, scale.f32(), dx.data(), labels.device.as<int32_t>(),
                               loss.f32(), count.device.as<int64_t>(), lse.f32(), bad.as<BadLabel>(),
                               workspace.data());
      },
      prepare);
  Tensor wrong = labels.count() > 5 ? values(DType::kI32,
                                             [&] {
                                               auto w = ids;
                                               w[5] = static_cast<double>(V);
                                               return w;
                                             }())
                                    : values(DType::kI32, ids);
  cross_entropy(c.stream, shape, x.data(), wrong.device.as<int32_t>(), loss.f32(), count.device.as<int64_t>(),
                lse.f32(), bad.as<BadLabel>(), workspace.data());
  require(cudaDeviceSynchronize(), "bad label");
  unsigned long long row = 0;
  require(cudaMemcpy(&row, bad.data(), 8, cudaMemcpyDeviceToHost), "copy");
  c.expect(name + " names the bad row", row == 5, std::to_string(row));
}

void check_pairs(Checks& c, DType dtype, bool weighted, bool labels_float) {
  const int64_t n = 10007;
  const Tensor x = random_tensor(dtype, n, 53, -8, 8),
               y = random_tensor(labels_float ? DType::kF32 : dtype, n, 54, 0, 1),
               w = random_tensor(DType::kF32, n, 55, 0, 2);
  const Tensor scale = values(DType::kF32, {0.5});
  Tensor loss = tensor(DType::kF32, 1), count = tensor(DType::kI64, 1), dx = tensor(dtype, n);
  std::vector<double> loss_w(1), count_w{static_cast<double>(n)}, dx_w(x.host.size()), mse_w(1);
  for (int64_t i = 0; i < n; ++i) {
    const double weight = weighted ? w[i] : 1.0;
    loss_w[0] += weight * (std::fmax(x[i], 0.0) - x[i] * y[i] + std::log1p(std::exp(-std::fabs(x[i]))));
    dx_w[at(i)] = scale[0] * (1 / (1 + std::exp(-x[i])) - y[i]) * weight;
    mse_w[0] += (x[i] - y[i]) * (x[i] - y[i]);
  }
  DeviceBuffer workspace(pair_loss_workspace(n));
  const std::string name = "bce " + std::string(lockstep::name_of(dtype)) + (weighted ? " weighted" : "") +
                           (labels_float ? " f32 labels" : "");
  c.check(name, {{&loss, &loss_w, "loss"}, {&count, &count_w, "count"}}, 1e-5, [&] {
    bce_with_logits(c.stream, dtype, x.data(), y.data(), labels_float, weighted ? w.f32() : nullptr, n,
                    loss.f32(), count.device.as<int64_t>(), workspace.data());
  });
  c.check(name + " grad", {{&dx, &dx_w, "dx"}}, bound_of(dtype), [&] {
    bce_with_logits_grad(c.stream, dtype, scale.f32(), x.data(), y.data(), labels_float,
                         weighted ? w.f32() : nullptr, n, dx.data());
  });
  if (labels_float && dtype != DType::kF32) return;
  c.check("mse " + std::string(lockstep::name_of(dtype)),
          {{&loss, &mse_w, "loss"}, {&count, &count_w, "count"}}, 1e-5, [&] {
            mse(c.stream, dtype, x.data(), y.data(), n, loss.f32(), count.device.as<int64_t>(),
                workspace.data());
          });
}

}  // namespace

void check_losses(Checks& c) {
  for (const DType dtype : kFloating) {
    check_cross_entropy(c, dtype, 40, 1000, 0.0);
    check_cross_entropy(c, dtype, 40, 1000, 0.1);
    check_cross_entropy(c, dtype, 11, 50257, 0.0);
    check_cross_entropy(c, dtype, 9, 50304, 0.0);
    check_pairs(c, dtype, false, false);
    check_pairs(c, dtype, true, true);
  }
}

}  // namespace kernel_check
