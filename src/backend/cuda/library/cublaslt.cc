#include "backend/cuda/library/cublaslt.h"

#include "backend/cuda/library/shared_library.h"
#include "base/error.h"

namespace lockstep::cuda {
namespace {

CublasLt load() {
  const SharedLibrary library({"libcublasLt.so.13", "libcublasLt.so"}, "training on a GPU");
  CublasLt lt{};
  library.find("cublasLtCreate", lt.create);
  library.find("cublasLtDestroy", lt.destroy);
  library.find("cublasLtGetVersion", lt.version);
  library.find("cublasLtGetStatusString", lt.status_string);
  library.find("cublasLtMatmul", lt.matmul);
  // The header defines the creating functions on top of ..._internal; the plain names are exported too.
  library.find("cublasLtMatmulDescCreate", lt.desc_create);
  library.find("cublasLtMatmulDescDestroy", lt.desc_destroy);
  library.find("cublasLtMatmulDescSetAttribute", lt.desc_set);
  library.find("cublasLtMatrixLayoutCreate", lt.layout_create);
  library.find("cublasLtMatrixLayoutDestroy", lt.layout_destroy);
  library.find("cublasLtMatrixLayoutSetAttribute", lt.layout_set);
  library.find("cublasLtMatmulPreferenceCreate", lt.preference_create);
  library.find("cublasLtMatmulPreferenceDestroy", lt.preference_destroy);
  library.find("cublasLtMatmulPreferenceSetAttribute", lt.preference_set);
  library.find("cublasLtMatmulAlgoGetHeuristic", lt.heuristic);
  library.find("cublasLtMatmulAlgoCheck", lt.algo_check);
  library.find("cublasLtMatmulAlgoConfigGetAttribute", lt.algo_get);
  lt.path = library.path();
  return lt;
}

}  // namespace

const CublasLt& cublaslt() {
  static const CublasLt loaded = load();
  return loaded;
}

void require(cublasStatus_t status, const char* what) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw DeviceError("cuBLASLt: {}: {}", what, cublaslt().status_string(status));
}

}  // namespace lockstep::cuda
