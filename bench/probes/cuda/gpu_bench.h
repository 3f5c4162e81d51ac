// What the programs of this folder share: buffers with random contents, timing by events, results as a table
// and as JSON lines.
#pragma once
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "backend/cuda/kernels/launch.h"

namespace gpu_bench {

using lockstep::DType;
using lockstep::cuda::require;

class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  explicit DeviceBuffer(int64_t bytes) : bytes_(bytes) {
    require(cudaMalloc(&data_, static_cast<size_t>(bytes < 256 ? 256 : bytes)), "cudaMalloc");
  }
  ~DeviceBuffer() {
    if (data_ != nullptr) cudaFree(data_);
  }
  DeviceBuffer(DeviceBuffer&& other) noexcept { *this = std::move(other); }
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  void* data() const { return data_; }
  template <typename T>
  T* as() const {
    return static_cast<T*>(data_);
  }
  int64_t bytes() const { return bytes_; }

 private:
  void* data_ = nullptr;
  int64_t bytes_ = 0;
};

// Uniform in [-scale, scale], a function of the seed and the element alone.
void fill_random(void* data, DType dtype, int64_t count, uint32_t seed, float scale = 1.0f);
DeviceBuffer random_buffer(DType dtype, int64_t count, uint32_t seed, float scale = 1.0f);
// 64 bits that change with any element.
uint64_t checksum(const void* data, int64_t bytes);

inline double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Median milliseconds of one call: a warm-up, then batches of calls between events until `budget_ms` have
// passed.
double time_ms(cudaStream_t stream, const std::function<void()>& call, double budget_ms = 20);

// One line of JSON per result in $OUT/NAME.jsonl (or ./NAME.jsonl), and a line of text on standard output.
class Report {
 public:
  explicit Report(const std::string& name);
  ~Report();
  void title(const char* text);
  struct Field {
    const char* name;
    double number;
    std::string text;
    bool is_text;
    Field(const char* n, double v) : name(n), number(v), is_text(false) {}
    Field(const char* n, const std::string& v) : name(n), number(0), text(v), is_text(true) {}
    Field(const char* n, const char* v) : name(n), number(0), text(v), is_text(true) {}
  };
  void line(const std::string& what, const std::vector<Field>& fields);

 private:
  std::FILE* file_;
  std::string section_;
  double start_;
};

}  // namespace gpu_bench
