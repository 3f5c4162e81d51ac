#include "backend/cuda/kernels/element.cuh"
#include "gpu_bench.h"

namespace gpu_bench {
namespace {

__device__ uint32_t mix(uint32_t x) {
  x ^= x >> 16;
  x *= 0x7feb352du;
  x ^= x >> 15;
  x *= 0x846ca68bu;
  return x ^ (x >> 16);
}

template <typename T>
__global__ void fill_kernel(T* data, int64_t count, uint32_t seed, float scale) {
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count;
       i += int64_t{gridDim.x} * blockDim.x) {
    const uint32_t bits = mix(static_cast<uint32_t>(i) ^ mix(seed + static_cast<uint32_t>(i >> 32)));
    data[i] = lockstep::cuda::from_float<T>(scale * (static_cast<float>(bits >> 8) * 0x1p-23f - 1.0f));
  }
}

// Integer sums commute: the result does not depend on the order of blocks.
__global__ void checksum_kernel(const uint32_t* data, int64_t words, unsigned long long* sum) {
  unsigned long long mine = 0;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < words;
       i += int64_t{gridDim.x} * blockDim.x)
    mine += static_cast<unsigned long long>(data[i]) * (2ull * static_cast<unsigned long long>(i) + 1ull) +
            mix(data[i] ^ static_cast<uint32_t>(i));
  atomicAdd(sum, mine);
}

}  // namespace

void fill_random(void* data, DType dtype, int64_t count, uint32_t seed, float scale) {
  lockstep::cuda::with_storage(dtype, [&](auto zero) {
    using T = decltype(zero);
    fill_kernel<<<1024, 256>>>(static_cast<T*>(data), count, seed, scale);
  });
  require(cudaGetLastError(), "fill");
}

DeviceBuffer random_buffer(DType dtype, int64_t count, uint32_t seed, float scale) {
  DeviceBuffer buffer(count * lockstep::size_of(dtype));
  fill_random(buffer.data(), dtype, count, seed, scale);
  return buffer;
}

uint64_t checksum(const void* data, int64_t bytes) {
  static unsigned long long* sum = nullptr;
  if (sum == nullptr) require(cudaMalloc(&sum, 8), "cudaMalloc");
  require(cudaDeviceSynchronize(), "before a checksum");
  require(cudaMemset(sum, 0, 8), "memset");
  checksum_kernel<<<1024, 256>>>(static_cast<const uint32_t*>(data), bytes / 4, sum);
  unsigned long long result = 0;
  require(cudaMemcpy(&result, sum, 8, cudaMemcpyDeviceToHost), "checksum");
  return result;
}

double time_ms(cudaStream_t stream, const std::function<void()>& call, double budget_ms) {
  cudaEvent_t begin, end;
  require(cudaEventCreate(&begin), "event");
  require(cudaEventCreate(&end), "event");
  const auto run = [&](int calls) {
    require(cudaEventRecord(begin, stream), "event");
    for (int i = 0; i < calls; ++i) call();
    require(cudaEventRecord(end, stream), "event");
    require(cudaEventSynchronize(end), "timing");
    float ms = 0;
    require(cudaEventElapsedTime(&ms, begin, end), "timing");
    return static_cast<double>(ms) / calls;
  };
  run(1);
  const double once = std::max(run(1), 1e-3);
  // At least three batches, each long enough that launching does not show.
  const int batches = 5;
  const int calls = std::clamp(static_cast<int>(budget_ms / batches / once), 1, 200);
  std::vector<double> times;
  for (int i = 0; i < (once * batches > 4 * budget_ms ? 3 : batches); ++i) times.push_back(run(calls));
  std::nth_element(times.begin(), times.begin() + static_cast<long>(times.size() / 2), times.end());
  const double median = times[times.size() / 2];
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  return median;
}

Report::Report(const std::string& name) : start_(seconds_now()) {
  const char* folder = std::getenv("OUT");
  const std::string path =
      (folder == nullptr ? std::string(".") : std::string(folder)) + "/" + name + ".jsonl";
  file_ = std::fopen(path.c_str(), "a");
}
Report::~Report() {
  if (file_ != nullptr) std::fclose(file_);
}

void Report::title(const char* text) {
  section_ = text;
  std::printf("\n== %s  (t = %.1f s)\n", text, seconds_now() - start_);
  std::fflush(stdout);
}

void Report::line(const std::string& what, const std::vector<Field>& fields) {
  std::string json = "{\"section\": \"" + section_ + "\", \"what\": \"" + what + "\"";
  std::printf("%-58s", what.c_str());
  char text[64];
  for (const Field& field : fields) {
    if (field.is_text) {
      std::printf("  %s %s", field.name, field.text.c_str());
      std::string escaped;
      for (const char c : field.text) escaped += c == '"' || c == '\\' ? '\'' : c == '\n' ? ' ' : c;
      json += std::string(", \"") + field.name + "\": \"" + escaped + "\"";
    } else {
      std::snprintf(text, sizeof(text), "%.4g", field.number);
      std::printf("  %s %s", field.name, text);
      std::snprintf(text, sizeof(text), "%.9g", field.number);
      const bool finite = field.number - field.number == 0;
      json += std::string(", \"") + field.name + "\": " + (finite ? text : "null");
    }
  }
  std::printf("\n");
  std::fflush(stdout);
  json += "}\n";
  if (file_ != nullptr) std::fputs(json.c_str(), file_), std::fflush(file_);
}

}  // namespace gpu_bench
