#include "backend/cuda/product_choices.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "backend/cuda/kernels/launch.h"
#include "backend/cuda/kernels/probe_data.h"
#include "backend/cuda/library/cublaslt.h"
#include "base/error.h"
#include "base/log.h"

namespace lockstep::cuda {
namespace {

constexpr int kProposals = 8;
// Of products that take long: trying another one costs what it may save in ten steps.
constexpr int kProposalsOfLongOnes = 4;
constexpr double kLongFlops = 1e12;
// Below, a product takes a few microseconds with any of them.
constexpr double kLeastFlops = 2e8;
constexpr double kTimedSeconds = 5e-4;  // of each candidate
constexpr int kMostRuns = 10;

class Timer {
 public:
  Timer() {
    require(cudaEventCreate(&begin_), "an event");
    require(cudaEventCreate(&end_), "an event");
  }
  ~Timer() {
    cudaEventDestroy(begin_);
    cudaEventDestroy(end_);
  }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  template <typename Body>
  double seconds(cudaStream_t stream, int runs, const Body& body) const {
    require(cudaEventRecord(begin_, stream), "an event");
    for (int i = 0; i < runs; ++i) body();
    require(cudaEventRecord(end_, stream), "an event");
    require(cudaEventSynchronize(end_), "timing a product");
    float milliseconds = 0;
    require(cudaEventElapsedTime(&milliseconds, begin_, end_), "timing a product");
    return milliseconds * 1e-3 / runs;
  }

 private:
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
};

int64_t elements(int64_t matrix, int64_t batch, int64_t stride) {
  return stride == 0 ? matrix : matrix * batch;
}

std::string text_of(const MatmulShape& s) {
  return fmt::format("{} {} {} {}", s.text(), s.a_stride, s.b_stride, s.d_stride);
}

int64_t padded(int64_t bytes) { return (bytes + 255) / 256 * 256; }

}  // namespace

ProductChoices::ProductChoices(std::string device, cudaStream_t stream, PhaseTimes& times)
    : device_(std::move(device)), stream_(stream), times_(times) {
  require(cudaHostAlloc(reinterpret_cast<void**>(&differ_), sizeof(int), cudaHostAllocMapped),
          "pinned memory");
}

ProductChoices::~ProductChoices() {
  cudaFree(memory_);
  cudaFreeHost(differ_);
}

bool ProductChoices::has(const MatmulShape& shape) const {
  const std::lock_guard lock(mutex_);
  return known_.contains(text_of(shape));
}

std::optional<AlgorithmChoice> ProductChoices::choose(const MatmulPlan& plan, bool keeps_memory) {
  const std::string shape = text_of(plan.shape());
  const std::lock_guard lock(mutex_);
  if (const auto known = known_.find(shape); known != known_.end()) return known->second;
  const std::string key = fmt::format("product {} {}", device_, shape);
  const auto stored = AlgorithmChoice::parse(disk_.read(key, "algorithm"));
  if (stored && plan.accepts(*stored)) return known_.emplace(shape, *stored).first->second;
  const PhaseTimes::Scope scope(times_, "products tried");
  const std::optional<AlgorithmChoice> choice = fastest(plan);
  if (!keeps_memory) free_memory();
  if (!choice) return std::nullopt;
  disk_.write(key, "algorithm", choice->text());
  return known_.emplace(shape, *choice).first->second;
}

void* ProductChoices::memory(int64_t bytes) {
  if (bytes <= memory_bytes_) return memory_;
  cudaFree(memory_);
  memory_bytes_ = cudaMalloc(&memory_, static_cast<size_t>(bytes)) == cudaSuccess ? bytes : 0;
  if (memory_bytes_ > 0) return memory_;
  cudaGetLastError();
  return memory_ = nullptr;
}

void ProductChoices::release_memory() {
  const std::lock_guard lock(mutex_);
  free_memory();
}

void ProductChoices::free_memory() {
  if (memory_ == nullptr) return;
  require(cudaStreamSynchronize(stream_), "trying products");
  cudaFree(memory_);
  memory_ = nullptr;
  memory_bytes_ = 0;
}

std::optional<AlgorithmChoice> ProductChoices::fastest(const MatmulPlan& plan) {
  const MatmulShape& s = plan.shape();
  const std::vector<AlgorithmChoice> candidates =
      plan.candidates(s.flops() < kLongFlops ? kProposals : kProposalsOfLongOnes, {});
  if (candidates.empty()) return std::nullopt;
  if (candidates.size() == 1 || s.flops() < kLeastFlops) return candidates.at(0);

  const int64_t a_count = elements(s.m * s.k, s.batch, s.a_stride);
  const int64_t b_count = elements(s.k * s.n, s.batch, s.b_stride);
  const int64_t d_count = elements(s.m * s.n, s.batch, s.d_stride), d_bytes = d_count * size_of(s.result);
  int64_t workspace_bytes = 0;
  for (const AlgorithmChoice& candidate : candidates)
    workspace_bytes = std::max(workspace_bytes, candidate.workspace);
  const std::array<int64_t, 7> bytes{
      a_count * size_of(s.dtype), b_count * size_of(s.dtype),       d_bytes, d_bytes, workspace_bytes,
      s.n * size_of(s.bias),      has_aux(s.epilogue) ? d_bytes : 0};
  int64_t total = 0;
  for (const int64_t part : bytes) total += padded(part);
  char* at = static_cast<char*>(memory(total));
  if (at == nullptr) return candidates.at(0);  // no room to try others: slower, the same bits
  const auto next = [&](size_t part) {
    char* const begin = at;
    at += padded(bytes[part]);
    return static_cast<void*>(begin);
  };
  const Parts parts{next(0), next(1), next(2), next(3), next(4), next(5), next(6)};
  fill_with_noise(stream_, s.bias, parts.bias, s.n, 4);
  if (has_aux(s.epilogue)) fill_with_noise(stream_, s.result, parts.aux, d_count, 5);
  fill_with_noise(stream_, s.dtype, parts.a, a_count, 1);
  fill_with_noise(stream_, s.dtype, parts.b, b_count, 2);
  return fastest_of(candidates, plan, parts);
}

AlgorithmChoice ProductChoices::fastest_of(const std::vector<AlgorithmChoice>& candidates,
                                           const MatmulPlan& plan, const Parts& parts) const {
  const MatmulShape& s = plan.shape();
  const int64_t d_count = elements(s.m * s.n, s.batch, s.d_stride);
  const auto run = [&](const AlgorithmChoice& candidate, void* d) {
    plan.run(stream_, {.a = parts.a, .b = parts.b, .d = d, .bias = parts.bias, .aux = parts.aux}, candidate,
             parts.workspace);
  };
  const auto fill_and_run = [&](const AlgorithmChoice& candidate, void* d) {
    fill_with_noise(stream_, s.result, d, d_count, 3);  // what is accumulated onto
    run(candidate, d);
  };
  const auto gives_the_bits = [&](const AlgorithmChoice& candidate) {
    *differ_ = 0;
    fill_and_run(candidate, parts.got);
    compare_bits(stream_, parts.want, parts.got, d_count * size_of(s.result), differ_);
    require(cudaStreamSynchronize(stream_), "trying a product");
    return *differ_ == 0;
  };
  fill_and_run(candidates[0], parts.want);
  const Timer timer;
  double best = HUGE_VAL, first = 0;
  AlgorithmChoice choice = candidates[0];
  for (const AlgorithmChoice& candidate : candidates) {
    const bool is_first = &candidate == &candidates[0];
    if (!is_first) run(candidate, parts.got);  // its code is loaded with its first run
    double seconds = timer.seconds(stream_, 1, [&] { run(candidate, parts.got); });
    if (seconds > 1.2 * best) continue;
    if (const int runs = std::min(static_cast<int>(kTimedSeconds / std::max(seconds, 1e-7)), kMostRuns);
        runs > 1)
      seconds = timer.seconds(stream_, runs, [&] { run(candidate, parts.got); });
    if (is_first) first = seconds;
    if (seconds >= best || (!is_first && !gives_the_bits(candidate))) continue;
    best = seconds;
    choice = candidate;
  }
  log_debug("{}: the best of {} algorithms reaches {:.0f} TFLOP/s instead of {:.0f}", s.text(),
            candidates.size(), s.flops() / best * 1e-12, s.flops() / first * 1e-12);
  return choice;
}

}  // namespace lockstep::cuda
