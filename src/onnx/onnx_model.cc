#include "onnx/onnx_model.h"

#include "base/error.h"

namespace lockstep {

OnnxType onnx_type(DType dtype) {
  switch (dtype) {
    case DType::kF32: return OnnxType::kFloat;
    case DType::kBF16: return OnnxType::kBFloat16;
    case DType::kF16: return OnnxType::kFloat16;
    case DType::kI32:
    case DType::kI64:
    case DType::kU8: return OnnxType::kInt64;
    case DType::kBool: return OnnxType::kBool;
  }
  throw InternalError("no such element type");
}

int64_t OnnxWeight::bytes() const {
  int64_t count = 1;
  for (const int64_t extent : dims) count *= extent;
  return count * size_of(dtype);
}

int64_t OnnxModel::tensor_bytes() const {
  int64_t bytes = 0;
  for (const OnnxWeight& weight : weights) bytes += weight.bytes();
  for (const OnnxConstant& constant : constants) bytes += static_cast<int64_t>(constant.bytes.size());
  return bytes;
}

}  // namespace lockstep
