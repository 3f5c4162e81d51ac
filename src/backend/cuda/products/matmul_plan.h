// MatmulPlan: one product ready to run through cuBLASLt: descriptors made once, the algorithm chosen by
// timing.
//
// D = alpha op(A) op(B) + beta C in row-major order, with an epilogue. Only algorithms that sum each element
// in one place are considered (no split of the inner axis, no reduction through atomics): which one runs is
// part of the bits, so the choice is made by one worker, told to the others and kept with the run
// (AlgorithmChoice::text).
#pragma once
#include <cublasLt.h>
#include <cuda_runtime.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/dtype.h"

namespace lockstep::cuda {

enum class Epilogue : uint8_t {
  kNone,
  kBias,           // D + bias, one per column
  kGeluAux,        // aux = D, D = gelu (tanh form) of it
  kGeluAuxBias,    // the same after a bias
  kDGelu,          // D times the slope of gelu at aux
  kDGeluBiasGrad,  // the same, and bias receives the sums over rows of the result
  kBiasGradB,  // bias receives the sums of op(B) over the inner axis, one per column: a bias gradient in dW
};

// Which of the addresses in MatmulArgs an epilogue has; the library refuses one that it has no use for.
bool has_bias(Epilogue epilogue);
bool has_aux(Epilogue epilogue);

struct MatmulShape {
  int64_t m = 0, n = 0, k = 0;
  int64_t batch = 1;
  // From one matrix of a batch to the next, in elements; 0 shares one matrix.
  int64_t a_stride = 0, b_stride = 0, d_stride = 0;
  bool transpose_a = false, transpose_b = false;
  DType dtype = DType::kBF16;   // of A and B
  DType result = DType::kBF16;  // of C and D
  DType bias = DType::kBF16;
  bool tf32 = false;        // fp32 operands rounded to tf32
  bool accumulate = false;  // beta = 1
  Epilogue epilogue = Epilogue::kNone;

  std::string text() const;
  double flops() const { return 2.0 * static_cast<double>(batch) * m * n * k; }
};

struct MatmulArgs {
  const void* a = nullptr;
  const void* b = nullptr;
  void* d = nullptr;
  void* bias = nullptr;
  void* aux = nullptr;
  const void* c = nullptr;  // what is accumulated onto where it is not d
};

// What cuBLASLt calls an algorithm: opaque, and storable for one version of the library on one device.
struct AlgorithmChoice {
  cublasLtMatmulAlgo_t algorithm{};
  int64_t workspace = 0;
  int id = 0, tile = 0, stages = 0, split_k = 0, reduction = 0, cluster = 0;

  std::string text() const;  // hexadecimal
  static std::optional<AlgorithmChoice> parse(const std::string& text);
};

class MatmulPlan {
 public:
  MatmulPlan(cublasLtHandle_t handle, const MatmulShape& shape, int64_t workspace_limit);
  ~MatmulPlan();
  MatmulPlan(const MatmulPlan&) = delete;
  MatmulPlan& operator=(const MatmulPlan&) = delete;

  // The library's first `most` proposals that are deterministic, best guess first. Empty where it has none.
  std::vector<AlgorithmChoice> candidates(int most, const MatmulArgs& args) const;
  // Whether the library still takes a stored choice.
  bool accepts(const AlgorithmChoice& choice) const;

  void run(cudaStream_t stream, const MatmulArgs& args, const AlgorithmChoice& choice, void* workspace) const;

  const MatmulShape& shape() const { return shape_; }

 private:
  void set_pointers(const MatmulArgs& args) const;

  cublasLtHandle_t handle_;
  MatmulShape shape_;
  int64_t workspace_limit_;
  cublasLtMatmulDesc_t desc_ = nullptr;
  cublasLtMatrixLayout_t a_ = nullptr, b_ = nullptr, d_ = nullptr;
};

}  // namespace lockstep::cuda
