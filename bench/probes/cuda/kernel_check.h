// The harness of kernel_check: tensors with a copy in fp64 on the host, one line per case, no stop at a
// failure.
#pragma once
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "gpu_bench.h"

namespace kernel_check {

using gpu_bench::DeviceBuffer;
using gpu_bench::require;
using lockstep::DType;

// Random numbers that every run draws alike.
class Draw {
 public:
  explicit Draw(uint64_t seed) : state_(seed * 2654435769u + 1) {}
  double uniform() {  // [0, 1)
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return static_cast<double>(state_ >> 11) * 0x1p-53;
  }
  double operator()(double low, double high) { return low + (high - low) * uniform(); }
  int64_t below(int64_t n) { return static_cast<int64_t>(uniform() * static_cast<double>(n)); }

 private:
  uint64_t state_;
};

// A tensor on the device; `host` holds what a kernel reads, exactly.
struct Tensor {
  DType dtype = DType::kF32;
  std::vector<double> host;
  DeviceBuffer device;

  int64_t count() const { return static_cast<int64_t>(host.size()); }
  void* data() const { return device.data(); }
  float* f32() const { return device.as<float>(); }
  double operator[](int64_t i) const { return host[static_cast<size_t>(i)]; }
  double& operator[](int64_t i) { return host[static_cast<size_t>(i)]; }
  void upload();                     // host -> device, rounding host to what is stored
  std::vector<double> read() const;  // what the device holds
  void poison() const;               // so that an element that is not written shows
};

Tensor tensor(DType dtype, int64_t count);  // zero
Tensor random_tensor(DType dtype, int64_t count, uint64_t seed, double low = -1, double high = 1);
Tensor values(DType dtype, std::vector<double> host);

struct Result {
  const Tensor* tensor;
  const std::vector<double>* expected;
  std::string name;
};

class Checks {
 public:
  explicit Checks(gpu_bench::Report& report) : report_(report) {}

  // Runs twice from the same start (`prepare` restores what is updated in place); compares with fp64 by
  // |out - ref| / |ref|, and the two runs bit by bit. `bound` 0 asks for equality.
  void check(const std::string& name, const std::vector<Result>& results, double bound,
             const std::function<void()>& run, const std::function<void()>& prepare = nullptr);
  void expect(const std::string& name, bool holds, const std::string& detail = "");
  // Milliseconds, and the rate for the bytes that must move and the operations that must be done.
  void time(const std::string& name, double bytes, double flops, const std::function<void()>& run);
  // Runs a group; what throws is one failure.
  void group(const char* name, const std::function<void()>& body);
  int failures() const { return failures_; }
  int cases() const { return cases_; }
  const std::vector<std::string>& failed() const { return failed_; }
  cudaStream_t stream = nullptr;
  double copy_gb_s = 0, matmul_tflop_s = 0;

 private:
  void fail(const std::string& name, const std::string& why);
  gpu_bench::Report& report_;
  int failures_ = 0, cases_ = 0;
  std::vector<std::string> failed_;
};

inline double bound_of(DType dtype) {
  return dtype == DType::kF32 ? 1e-5 : dtype == DType::kBF16 ? 6e-3 : 1e-3;
}
inline const DType kFloating[] = {DType::kF32, DType::kBF16, DType::kF16};

void check_pointwise(Checks& checks);
void check_shapes(Checks& checks);
void check_rows(Checks& checks);
void check_losses(Checks& checks);
void check_tables(Checks& checks);
void check_optimizers(Checks& checks);
void check_rounded(Checks& checks);
void check_images(Checks& checks);
void check_attention(Checks& checks);
void check_products(Checks& checks);
void time_kernels(Checks& checks);

}  // namespace kernel_check
