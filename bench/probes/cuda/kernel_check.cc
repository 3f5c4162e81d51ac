// Every CUDA kernel on generated data against a plain fp64 reference: error, equal bits on two runs, time
// beside the measured ceilings. Never stops at a failure; the last lines list what failed.
#include "kernel_check.h"

#include <set>

#include "backend/cuda/library/cublaslt.h"
#include "backend/cuda/products/matmul_plan.h"

namespace kernel_check {

void Tensor::upload() {
  const auto bytes = static_cast<size_t>(count() * lockstep::size_of(dtype));
  std::vector<char> raw(bytes);
  for (int64_t i = 0; i < count(); ++i) {
    lockstep::write_element(dtype, raw.data(), i, host[static_cast<size_t>(i)]);
    host[static_cast<size_t>(i)] = lockstep::read_element(dtype, raw.data(), i);
  }
  if (bytes > 0) require(cudaMemcpy(data(), raw.data(), bytes, cudaMemcpyHostToDevice), "upload");
}

std::vector<double> Tensor::read() const {
  const auto bytes = static_cast<size_t>(count() * lockstep::size_of(dtype));
  std::vector<char> raw(bytes);
  if (bytes > 0) require(cudaMemcpy(raw.data(), data(), bytes, cudaMemcpyDeviceToHost), "download");
  std::vector<double> result(host.size());
  for (int64_t i = 0; i < count(); ++i)
    result[static_cast<size_t>(i)] = lockstep::read_element(dtype, raw.data(), i);
  return result;
}

void Tensor::poison() const {
  require(cudaMemset(data(), 0xff, static_cast<size_t>(device.bytes())), "poison");
}

Tensor tensor(DType dtype, int64_t count) {
  Tensor t;
  t.dtype = dtype;
  t.host.assign(static_cast<size_t>(count), 0.0);
  t.device = DeviceBuffer(count * lockstep::size_of(dtype));
  require(cudaMemset(t.data(), 0, static_cast<size_t>(t.device.bytes())), "zero");
  return t;
}

Tensor values(DType dtype, std::vector<double> host) {
  Tensor t = tensor(dtype, static_cast<int64_t>(host.size()));
  t.host = std::move(host);
  t.upload();
  return t;
}

Tensor random_tensor(DType dtype, int64_t count, uint64_t seed, double low, double high) {
  Draw draw(seed);
  std::vector<double> host(static_cast<size_t>(count));
  for (double& x : host) x = draw(low, high);
  return values(dtype, std::move(host));
}

void Checks::fail(const std::string& name, const std::string& why) {
  ++failures_;
  failed_.push_back(name + ": " + why);
}

void Checks::check(const std::string& name, const std::vector<Result>& results, double bound,
                   const std::function<void()>& run, const std::function<void()>& prepare) {
  ++cases_;
  try {
    const auto start = [&] {
      if (prepare) return prepare();
      for (const Result& r : results) r.tensor->poison();
    };
    start();
    require(cudaDeviceSynchronize(), "before");
    run();
    require(cudaStreamSynchronize(stream), name.c_str());
    require(cudaDeviceSynchronize(), name.c_str());
    double worst = 0, largest = 0;
    std::string where;
    std::vector<uint64_t> bits;
    for (const Result& r : results) {
      const std::vector<double> out = r.tensor->read();
      double difference = 0, norm = 0;
      for (size_t i = 0; i < out.size(); ++i) {
        const double want = (*r.expected)[i];
        const bool same = out[i] == want || (std::isnan(out[i]) && std::isnan(want));
        const double d = same ? 0.0 : std::fabs(out[i] - want);
        difference += d * d;
        if (std::isfinite(want)) norm += want * want;
        const double relative = d / (std::fabs(want) + 1e-3);
        if (relative > largest || std::isnan(relative)) largest = relative;
      }
      const double error =
          std::sqrt(difference) / (std::sqrt(norm) + 1e-12 * std::sqrt(double(out.size()) + 1));
      if (!(error <= worst)) worst = error, where = r.name;
      bits.push_back(gpu_bench::checksum(r.tensor->data(), r.tensor->device.bytes() / 4 * 4));
    }
    start();
    require(cudaDeviceSynchronize(), "before");  // the stream does not wait for the default one
    run();
    require(cudaDeviceSynchronize(), name.c_str());
    bool equal = true;
    for (size_t i = 0; i < results.size(); ++i)
      equal = equal && gpu_bench::checksum(results[i].tensor->data(),
                                           results[i].tensor->device.bytes() / 4 * 4) == bits[i];
    const bool right = worst <= bound;
    report_.line(name, {{"error", worst},
                        {"max_rel", largest},
                        {"of", where},
                        {"bits", equal ? "equal" : "DIFFER"},
                        {"", right && equal ? "ok" : "FAILED"}});
    if (!right)
      fail(name, "error " + std::to_string(worst) + " of " + where + " is above " + std::to_string(bound));
    if (!equal) fail(name, "two runs differ");
  } catch (const std::exception& error) {
    report_.line(name, {{"threw", error.what()}, {"", "FAILED"}});
    fail(name, error.what());
    cudaGetLastError();
  }
}

void Checks::expect(const std::string& name, bool holds, const std::string& detail) {
  ++cases_;
  report_.line(name, {{"", holds ? "ok" : "FAILED"}, {"detail", detail}});
  if (!holds) fail(name, detail);
}

void Checks::time(const std::string& name, double bytes, double flops, const std::function<void()>& run) {
  try {
    const double ms = gpu_bench::time_ms(stream, run);
    std::vector<gpu_bench::Report::Field> fields{{"ms", ms}};
    if (bytes > 0) {
      fields.emplace_back("GB/s", bytes / ms / 1e6);
      if (copy_gb_s > 0) fields.emplace_back("of_copy_%", 100 * bytes / ms / 1e6 / copy_gb_s);
    }
    if (flops > 0) {
      fields.emplace_back("TFLOP/s", flops / ms / 1e9);
      if (matmul_tflop_s > 0) fields.emplace_back("of_product_%", 100 * flops / ms / 1e9 / matmul_tflop_s);
    }
    report_.line(name, fields);
  } catch (const std::exception& error) {
    report_.line(name, {{"threw", error.what()}});
    fail(name, error.what());
    cudaGetLastError();
  }
}

void Checks::group(const char* name, const std::function<void()>& body) {
  report_.title(name);
  try {
    body();
    require(cudaDeviceSynchronize(), name);
  } catch (const std::exception& error) {
    report_.line(name, {{"threw", error.what()}, {"", "FAILED"}});
    fail(name, error.what());
    cudaGetLastError();
  }
}

namespace {

void ceilings(Checks& checks, gpu_bench::Report& report) {
  const int64_t bytes = int64_t{1} << 31;
  DeviceBuffer a = gpu_bench::random_buffer(DType::kF32, bytes / 4, 1), b(bytes);
  const double ms = gpu_bench::time_ms(checks.stream, [&] {
    require(cudaMemcpyAsync(b.data(), a.data(), static_cast<size_t>(bytes), cudaMemcpyDeviceToDevice,
                            checks.stream),
            "copy");
  });
  checks.copy_gb_s = 2.0 * bytes / ms / 1e6;
  using namespace lockstep::cuda;
  cublasLtHandle_t handle = nullptr;
  lockstep::cuda::require(cublaslt().create(&handle), "a handle");
  const MatmulShape shape{.m = 8192, .n = 8192, .k = 8192};
  const MatmulPlan plan(handle, shape, 64 << 20);
  DeviceBuffer x = gpu_bench::random_buffer(DType::kBF16, 8192 * 8192, 2),
               y = gpu_bench::random_buffer(DType::kBF16, 8192 * 8192, 3);
  DeviceBuffer z(8192 * 8192 * 2), workspace(64 << 20);
  const MatmulArgs args{x.data(), y.data(), z.data()};
  const auto choices = plan.candidates(1, args);
  if (!choices.empty()) {
    const double product = gpu_bench::time_ms(
        checks.stream, [&] { plan.run(checks.stream, args, choices[0], workspace.data()); }, 60);
    checks.matmul_tflop_s = shape.flops() / product / 1e9;
  }
  report.line("ceilings", {{"copy_GB/s", checks.copy_gb_s}, {"product_TFLOP/s", checks.matmul_tflop_s}});
}

}  // namespace
}  // namespace kernel_check

int main(int argc, char** argv) {
  using namespace kernel_check;
  gpu_bench::Report report("kernel_check");
  Checks checks(report);
  try {
    require(cudaStreamCreateWithFlags(&checks.stream, cudaStreamNonBlocking), "stream");
  } catch (const std::exception& error) {
    std::printf("no device: %s\n", error.what());
    return 2;
  }
  const std::set<std::string> wanted(argv + 1, argv + argc);
  const std::vector<std::pair<const char*, void (*)(Checks&)>> groups = {
      {"pointwise", check_pointwise}, {"shapes", check_shapes}, {"rows", check_rows},
      {"losses", check_losses},       {"tables", check_tables}, {"optimizers", check_optimizers},
      {"rounded", check_rounded},     {"images", check_images}, {"attention", check_attention},
      {"products", check_products},   {"speed", time_kernels}};
  if (wanted.empty() || wanted.count("speed") != 0)
    checks.group("ceilings", [&] { ceilings(checks, report); });
  for (const auto& [name, run] : groups)
    if (wanted.empty() || wanted.count(name) != 0) checks.group(name, [&, run = run] { run(checks); });
  std::printf("\n%d cases, %d failures\n", checks.cases(), checks.failures());
  for (const std::string& line : checks.failed()) std::printf("FAILED %s\n", line.c_str());
  return checks.failures() == 0 ? 0 : 1;
}
