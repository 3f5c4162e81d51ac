#include "backend/cuda/product_choices.h"

#include <algorithm>
#include <cmath>

#include "backend/cuda/kernels/launch.h"
#include "backend/cuda/kernels/probe_data.h"
#include "backend/cuda/library/cublaslt.h"
#include "base/error.h"
#include "base/log.h"

namespace lockstep::cuda {
namespace {

constexpr int kProposals = 8;
// Below, a product takes a few microseconds with any of them.
constexpr double kLeastFlops = 2e8;
constexpr double kTimedSeconds = 2e-3;  // of each candidate
constexpr int kLeastRuns = 3, kMostRuns = 20;

// Memory that is only there while candidates are timed; none where the device has no room.
class Scratch {
 public:
  explicit Scratch(int64_t bytes) {
    if (cudaMalloc(&data_, static_cast<size_t>(std::max<int64_t>(bytes, 256))) != cudaSuccess) {
      data_ = nullptr;
      cudaGetLastError();
    }
  }
  ~Scratch() {
    if (data_ != nullptr) cudaFree(data_);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  void* data() const { return data_; }

 private:
  void* data_ = nullptr;
};

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

}  // namespace

ProductChoices::ProductChoices(std::string device, cudaStream_t stream)
    : device_(std::move(device)), stream_(stream) {
  require(cudaHostAlloc(reinterpret_cast<void**>(&differ_), sizeof(int), cudaHostAllocMapped),
          "pinned memory");
}

ProductChoices::~ProductChoices() { cudaFreeHost(differ_); }

AlgorithmChoice ProductChoices::choose(const MatmulPlan& plan) {
  const MatmulShape& s = plan.shape();
  const std::string shape = fmt::format("{} {} {} {}", s.text(), s.a_stride, s.b_stride, s.d_stride);
  const std::lock_guard lock(mutex_);
  if (const auto known = known_.find(shape); known != known_.end()) return known->second;
  const std::string key = fmt::format("product {} {}", device_, shape);
  const auto stored = AlgorithmChoice::parse(disk_.read(key, "algorithm"));
  if (stored && plan.accepts(*stored)) return known_.emplace(shape, *stored).first->second;
  const AlgorithmChoice choice = fastest(plan);
  disk_.write(key, "algorithm", choice.text());
  return known_.emplace(shape, choice).first->second;
}

AlgorithmChoice ProductChoices::fastest(const MatmulPlan& plan) const {
  const MatmulShape& s = plan.shape();
  const std::vector<AlgorithmChoice> candidates = plan.candidates(kProposals, {});
  if (candidates.size() == 1 || s.flops() < kLeastFlops) return candidates.at(0);

  const int64_t a_count = elements(s.m * s.k, s.batch, s.a_stride);
  const int64_t b_count = elements(s.k * s.n, s.batch, s.b_stride);
  const int64_t d_count = elements(s.m * s.n, s.batch, s.d_stride), d_bytes = d_count * size_of(s.result);
  int64_t workspace_bytes = 0;
  for (const AlgorithmChoice& candidate : candidates)
    workspace_bytes = std::max(workspace_bytes, candidate.workspace);
  const Scratch a(a_count * size_of(s.dtype)), b(b_count * size_of(s.dtype)), want(d_bytes), got(d_bytes),
      workspace(workspace_bytes), bias(s.n * size_of(s.bias)), aux(has_aux(s.epilogue) ? d_bytes : 0);
  for (const Scratch* const part : {&a, &b, &want, &got, &workspace, &bias, &aux})
    if (part->data() == nullptr) return candidates.at(0);  // no room to try others: slower, the same bits
  fill_with_noise(stream_, s.bias, bias.data(), s.n, 4);
  if (has_aux(s.epilogue)) fill_with_noise(stream_, s.result, aux.data(), d_count, 5);
  fill_with_noise(stream_, s.dtype, a.data(), a_count, 1);
  fill_with_noise(stream_, s.dtype, b.data(), b_count, 2);

  const auto run = [&](const AlgorithmChoice& candidate, const Scratch& d) {
    plan.run(stream_, {.a = a.data(), .b = b.data(), .d = d.data(), .bias = bias.data(), .aux = aux.data()},
             candidate, workspace.data());
  };
  const auto fill_and_run = [&](const AlgorithmChoice& candidate, const Scratch& d) {
    fill_with_noise(stream_, s.result, d.data(), d_count, 3);  // what is accumulated onto
    run(candidate, d);
  };
  fill_and_run(candidates[0], want);
  const Timer timer;
  double best = HUGE_VAL, first = 0;
  AlgorithmChoice choice = candidates[0];
  int equal = 0;
  for (const AlgorithmChoice& candidate : candidates) {
    *differ_ = 0;
    fill_and_run(candidate, got);
    compare_bits(stream_, want.data(), got.data(), d_bytes, differ_);
    require(cudaStreamSynchronize(stream_), "trying a product");
    if (*differ_ != 0) continue;
    ++equal;
    const double once = timer.seconds(stream_, 1, [&] { run(candidate, got); });
    const int runs =
        std::clamp(static_cast<int>(kTimedSeconds / std::max(once, 1e-7)), kLeastRuns, kMostRuns);
    const double seconds = timer.seconds(stream_, runs, [&] { run(candidate, got); });
    if (&candidate == &candidates[0]) first = seconds;
    if (seconds >= best) continue;
    best = seconds;
    choice = candidate;
  }
  log_debug("{}: {} of {} algorithms give the same bits, {:.0f} TFLOP/s instead of {:.0f}", s.text(), equal,
            candidates.size(), s.flops() / best * 1e-12, s.flops() / first * 1e-12);
  return choice;
}

}  // namespace lockstep::cuda
