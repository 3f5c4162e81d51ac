#include "backend/cuda/library/cublaslt.h"
#include "backend/cuda/products/matmul_plan.h"
#include "kernel_check.h"

namespace kernel_check {
namespace {

using namespace lockstep::cuda;

size_t at(int64_t i) { return static_cast<size_t>(i); }

double gelu(double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }
double gelu_slope(double x) {
  const double k = std::sqrt(2 / M_PI), t = std::tanh(k * (x + 0.044715 * x * x * x));
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * k * (1 + 3 * 0.044715 * x * x);
}

void check_product(Checks& c, cublasLtHandle_t handle, MatmulShape s) {
  s.bias = s.dtype;
  const bool reads_aux = s.epilogue == Epilogue::kDGelu || s.epilogue == Epilogue::kDGeluBiasGrad;
  const bool writes_aux = s.epilogue == Epilogue::kGeluAux || s.epilogue == Epilogue::kGeluAuxBias;
  const bool reads_bias = s.epilogue == Epilogue::kBias || s.epilogue == Epilogue::kGeluAuxBias;
  const bool writes_bias = s.epilogue == Epilogue::kDGeluBiasGrad || s.epilogue == Epilogue::kBiasGradB;
  if (s.batch > 1) s.a_stride = s.m * s.k, s.b_stride = s.k * s.n, s.d_stride = s.m * s.n;
  const Tensor a = random_tensor(s.dtype, s.batch * s.m * s.k, 101),
               b = random_tensor(s.dtype, s.batch * s.k * s.n, 102);
  const Tensor c0 = random_tensor(s.result, s.batch * s.m * s.n, 103);
  Tensor bias = random_tensor(s.dtype, s.n, 104), aux = random_tensor(s.dtype, s.m * s.n, 105, -2, 2);
  Tensor d = tensor(s.result, s.batch * s.m * s.n);
  std::vector<double> want(d.host.size()), aux_w(aux.host.size()), bias_w(bias.host.size(), 0.0);
  for (int64_t n = 0; n < s.batch; ++n)
    for (int64_t i = 0; i < s.m; ++i)
      for (int64_t j = 0; j < s.n; ++j) {
        double sum = s.accumulate ? c0[n * s.m * s.n + i * s.n + j] : 0.0;
        for (int64_t k = 0; k < s.k; ++k)
          sum += a[n * s.m * s.k + (s.transpose_a ? k * s.m + i : i * s.k + k)] *
                 b[n * s.k * s.n + (s.transpose_b ? j * s.k + k : k * s.n + j)];
        if (reads_bias) sum += bias[j];
        if (writes_aux) aux_w[at(i * s.n + j)] = sum, sum = gelu(sum);
        if (reads_aux) sum *= gelu_slope(aux[i * s.n + j]);
        if (s.epilogue == Epilogue::kDGeluBiasGrad) bias_w[at(j)] += sum;
        want[at(n * s.m * s.n + i * s.n + j)] = sum;
      }
  if (s.epilogue == Epilogue::kBiasGradB)
    for (int64_t j = 0; j < s.n; ++j)
      for (int64_t k = 0; k < s.k; ++k) bias_w[at(j)] += b[s.transpose_b ? j * s.k + k : k * s.n + j];
  const MatmulPlan plan(handle, s, 32 << 20);
  DeviceBuffer workspace(32 << 20);
  const bool uses_bias = reads_bias || writes_bias, uses_aux = reads_aux || writes_aux;
  const MatmulArgs args{a.data(), b.data(), d.data(), uses_bias ? bias.data() : nullptr,
                        uses_aux ? aux.data() : nullptr};
  const auto choices = plan.candidates(4, args);
  if (choices.empty()) return c.expect("matmul " + s.text(), false, "no deterministic algorithm");
  std::vector<Result> results{{&d, &want, "d"}};
  if (writes_aux) results.push_back({&aux, &aux_w, "aux"});
  if (writes_bias) results.push_back({&bias, &bias_w, "bias gradient"});
  const double bound = s.tf32 ? 2e-3
                       : s.dtype == DType::kF32
                           ? 1e-5
                           : 2 * bound_of(s.result == DType::kF32 ? DType::kF16 : s.dtype);
  c.check(
      "matmul " + s.text(), results, bound, [&] { plan.run(c.stream, args, choices[0], workspace.data()); },
      [&] {
        require(
            cudaMemcpy(d.data(), c0.data(), static_cast<size_t>(d.device.bytes()), cudaMemcpyDeviceToDevice),
            "copy");
        aux.upload();
        bias.upload();
      });
}

}  // namespace

void check_products(Checks& c) {
  cublasLtHandle_t handle = nullptr;
  lockstep::cuda::require(cublaslt().create(&handle), "a handle");
  for (const DType dtype : kFloating)
    for (const bool ta : {false, true})
      for (const bool tb : {false, true}) {
        MatmulShape s{.m = 128,
                      .n = 192,
                      .k = 96,
                      .transpose_a = ta,
                      .transpose_b = tb,
                      .dtype = dtype,
                      .result = dtype};
        check_product(c, handle, s);
        s.accumulate = true;
        s.result = DType::kF32;
        check_product(c, handle, s);
      }
  MatmulShape s{.m = 128, .n = 256, .k = 64, .dtype = DType::kF32, .result = DType::kF32};
  s.tf32 = true;
  check_product(c, handle, s);
  s = {.m = 64, .n = 72, .k = 40};
  s.batch = 5;
  check_product(c, handle, s);
  s = {.m = 37, .n = 50, .k = 23, .dtype = DType::kF32, .result = DType::kF32};
  check_product(c, handle, s);
  for (const Epilogue e : {Epilogue::kBias, Epilogue::kGeluAux, Epilogue::kGeluAuxBias, Epilogue::kDGelu,
                           Epilogue::kDGeluBiasGrad, Epilogue::kBiasGradB}) {
    MatmulShape shape{.m = 256, .n = 384, .k = 128};
    shape.transpose_b = e == Epilogue::kDGelu || e == Epilogue::kDGeluBiasGrad;
    shape.transpose_a = e == Epilogue::kBiasGradB;
    shape.epilogue = e;
    try {
      check_product(c, handle, shape);
    } catch (const std::exception& error) {
      c.expect("matmul " + shape.text(), false, error.what());
    }
  }
}

}  // namespace kernel_check
