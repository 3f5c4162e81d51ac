#include "backend/cuda/products/matmul_plan.h"

#include <cstring>

#include "backend/cuda/library/cublaslt.h"
#include "base/error.h"

namespace lockstep::cuda {
namespace {

cudaDataType_t data_type(DType dtype) {
  switch (dtype) {
    case DType::kF32: return CUDA_R_32F;
    case DType::kBF16: return CUDA_R_16BF;
    case DType::kF16: return CUDA_R_16F;
    default: throw InternalError("cuBLASLt has no products of {}", name_of(dtype));
  }
}

cublasLtEpilogue_t epilogue_of(Epilogue epilogue) {
  switch (epilogue) {
    case Epilogue::kNone: return CUBLASLT_EPILOGUE_DEFAULT;
    case Epilogue::kBias: return CUBLASLT_EPILOGUE_BIAS;
    case Epilogue::kGeluAux: return CUBLASLT_EPILOGUE_GELU_AUX;
    case Epilogue::kGeluAuxBias: return CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
    case Epilogue::kDGelu: return CUBLASLT_EPILOGUE_DGELU;
    case Epilogue::kDGeluBiasGrad: return CUBLASLT_EPILOGUE_DGELU_BGRAD;
    // Row-major B is the library's first operand.
    case Epilogue::kBiasGradB: return CUBLASLT_EPILOGUE_BGRADA;
  }
  throw InternalError("an epilogue without a name");
}

const char* name_of_epilogue(Epilogue epilogue) {
  constexpr const char* kNames[] = {"",       " bias",        " gelu_aux", " gelu_aux_bias",
                                    " dgelu", " dgelu_bgrad", " bgrad_b"};
  return kNames[static_cast<int>(epilogue)];
}

template <typename T>
void set(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t attribute, const T& value) {
  require(cublaslt().desc_set(desc, attribute, &value, sizeof(value)), "a product's description");
}

// A row-major matrix [rows, columns] is the library's column-major [columns, rows].
cublasLtMatrixLayout_t layout(DType dtype, int64_t rows, int64_t columns, int64_t batch, int64_t stride) {
  cublasLtMatrixLayout_t result = nullptr;
  require(cublaslt().layout_create(&result, data_type(dtype), static_cast<uint64_t>(columns),
                                   static_cast<uint64_t>(rows), columns),
          "a matrix layout");
  const auto count = static_cast<int32_t>(batch);
  require(cublaslt().layout_set(result, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof(count)),
          "a matrix layout");
  require(cublaslt().layout_set(result, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof(stride)),
          "a matrix layout");
  return result;
}

int config(const cublasLtMatmulAlgo_t& algorithm, cublasLtMatmulAlgoConfigAttributes_t attribute) {
  int value = 0;
  size_t written = 0;
  // Attributes are 16 or 32 bits wide; the value is zeroed before and little-endian.
  if (cublaslt().algo_get(&algorithm, attribute, &value, sizeof(value), &written) == CUBLAS_STATUS_SUCCESS)
    return value;
  uint16_t narrow = 0;
  cublaslt().algo_get(&algorithm, attribute, &narrow, sizeof(narrow), &written);
  return narrow;
}

AlgorithmChoice describe(const cublasLtMatmulAlgo_t& algorithm, size_t workspace) {
  AlgorithmChoice choice;
  choice.algorithm = algorithm;
  choice.workspace = static_cast<int64_t>(workspace);
  choice.id = config(algorithm, CUBLASLT_ALGO_CONFIG_ID);
  choice.tile = config(algorithm, CUBLASLT_ALGO_CONFIG_TILE_ID);
  choice.stages = config(algorithm, CUBLASLT_ALGO_CONFIG_STAGES_ID);
  choice.split_k = config(algorithm, CUBLASLT_ALGO_CONFIG_SPLITK_NUM);
  choice.reduction = config(algorithm, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME);
  choice.cluster = config(algorithm, CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID);
  return choice;
}

}  // namespace

bool has_bias(Epilogue epilogue) {
  return epilogue == Epilogue::kBias || epilogue == Epilogue::kGeluAuxBias ||
         epilogue == Epilogue::kDGeluBiasGrad || epilogue == Epilogue::kBiasGradB;
}

bool has_aux(Epilogue epilogue) {
  return epilogue == Epilogue::kGeluAux || epilogue == Epilogue::kGeluAuxBias ||
         epilogue == Epilogue::kDGelu || epilogue == Epilogue::kDGeluBiasGrad;
}

std::string MatmulShape::text() const {
  return fmt::format("{}x{}x{}{} {}{} {}{}{}{}", m, n, k, batch > 1 ? fmt::format(" x{}", batch) : "",
                     transpose_a ? "T" : "N", transpose_b ? "T" : "N", name_of(dtype),
                     result == dtype ? "" : fmt::format("->{}", name_of(result)), tf32 ? " tf32" : "",
                     fmt::format("{}{}", accumulate ? " +=" : "", name_of_epilogue(epilogue)));
}

std::string AlgorithmChoice::text() const {
  std::string result = fmt::format("{}:", workspace);
  for (const uint64_t word : algorithm.data) result += fmt::format("{:016x}", word);
  return result;
}

std::optional<AlgorithmChoice> AlgorithmChoice::parse(const std::string& text) {
  const size_t colon = text.find(':');
  constexpr size_t kWords = sizeof(cublasLtMatmulAlgo_t::data) / sizeof(uint64_t);
  if (colon == std::string::npos || text.size() != colon + 1 + 16 * kWords) return std::nullopt;
  cublasLtMatmulAlgo_t algorithm{};
  try {
    for (size_t i = 0; i < kWords; ++i)
      algorithm.data[i] = std::stoull(text.substr(colon + 1 + 16 * i, 16), nullptr, 16);
    return describe(algorithm, std::stoull(text.substr(0, colon)));
  } catch (const std::logic_error&) {
    return std::nullopt;
  }
}

MatmulPlan::MatmulPlan(cublasLtHandle_t handle, const MatmulShape& shape, int64_t workspace_limit)
    : handle_(handle), shape_(shape), workspace_limit_(workspace_limit) {
  const CublasLt& lt = cublaslt();
  const auto compute = shape.tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  require(lt.desc_create(&desc_, compute, CUDA_R_32F), "a product's description");
  // Row-major D = A B is column-major D^T = B^T A^T: the library's first operand is B.
  set(desc_, CUBLASLT_MATMUL_DESC_TRANSA, shape.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(desc_, CUBLASLT_MATMUL_DESC_TRANSB, shape.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(desc_, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue_of(shape.epilogue));
  if (has_bias(shape.epilogue)) set(desc_, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, data_type(shape.bias));
  if (has_aux(shape.epilogue)) set(desc_, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, shape.n);
  a_ = layout(shape.dtype, shape.transpose_a ? shape.k : shape.m, shape.transpose_a ? shape.m : shape.k,
              shape.batch, shape.a_stride);
  b_ = layout(shape.dtype, shape.transpose_b ? shape.n : shape.k, shape.transpose_b ? shape.k : shape.n,
              shape.batch, shape.b_stride);
  d_ = layout(shape.result, shape.m, shape.n, shape.batch, shape.d_stride);
}

MatmulPlan::~MatmulPlan() {
  const CublasLt& lt = cublaslt();
  if (d_ != nullptr) lt.layout_destroy(d_);
  if (b_ != nullptr) lt.layout_destroy(b_);
  if (a_ != nullptr) lt.layout_destroy(a_);
  if (desc_ != nullptr) lt.desc_destroy(desc_);
}

void MatmulPlan::set_pointers(const MatmulArgs& args) const {
  if (has_bias(shape_.epilogue)) set(desc_, CUBLASLT_MATMUL_DESC_BIAS_POINTER, args.bias);
  if (has_aux(shape_.epilogue)) set(desc_, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, args.aux);
}

std::vector<AlgorithmChoice> MatmulPlan::candidates(int most, const MatmulArgs& args) const {
  const CublasLt& lt = cublaslt();
  // The library looks at how addresses are aligned; a plan's are, by more than it asks for.
  static char aligned[256] __attribute__((aligned(256)));
  MatmulArgs looked_at = args;
  if (args.bias == nullptr) looked_at.bias = aligned;
  if (args.aux == nullptr) looked_at.aux = aligned;
  set_pointers(looked_at);
  cublasLtMatmulPreference_t preference = nullptr;
  require(lt.preference_create(&preference), "a preference");
  const auto limit = static_cast<uint64_t>(workspace_limit_);
  const uint32_t schemes = CUBLASLT_REDUCTION_SCHEME_NONE;
  lt.preference_set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &limit, sizeof(limit));
  lt.preference_set(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &schemes, sizeof(schemes));
  std::vector<cublasLtMatmulHeuristicResult_t> results(static_cast<size_t>(most));
  int found = 0;
  const cublasStatus_t status =
      lt.heuristic(handle_, desc_, b_, a_, d_, d_, preference, most, results.data(), &found);
  lt.preference_destroy(preference);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED) return {};
  require(status, "asking for algorithms");
  std::vector<AlgorithmChoice> choices;
  for (int i = 0; i < found; ++i) {
    const auto& result = results[static_cast<size_t>(i)];
    if (result.state != CUBLAS_STATUS_SUCCESS) continue;
    const AlgorithmChoice choice = describe(result.algo, result.workspaceSize);
    if (choice.split_k <= 1 && choice.reduction == CUBLASLT_REDUCTION_SCHEME_NONE) choices.push_back(choice);
  }
  return choices;
}

bool MatmulPlan::accepts(const AlgorithmChoice& choice) const {
  cublasLtMatmulHeuristicResult_t result{};
  return cublaslt().algo_check(handle_, desc_, b_, a_, d_, d_, &choice.algorithm, &result) ==
             CUBLAS_STATUS_SUCCESS &&
         static_cast<int64_t>(result.workspaceSize) <= workspace_limit_;
}

void MatmulPlan::run(cudaStream_t stream, const MatmulArgs& args, const AlgorithmChoice& choice,
                     void* workspace) const {
  set_pointers(args);
  const float alpha = 1.0f, beta = shape_.accumulate ? 1.0f : 0.0f;
  const void* const c = args.c != nullptr ? args.c : args.d;
  require(cublaslt().matmul(handle_, desc_, &alpha, args.b, b_, args.a, a_, &beta, c, d_, args.d, d_,
                            &choice.algorithm, workspace, static_cast<size_t>(choice.workspace), stream),
          "a product");
}

}  // namespace lockstep::cuda
