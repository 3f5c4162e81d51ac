// An ONNX model in memory, as the format has it, with the weights named but not held: nodes, small constants,
// and the ports that its caller sees. onnx_file.h writes it.
//
// Written for operator set 17 and IR version 8, which every runtime of the last years reads.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/dtype.h"

namespace lockstep {

inline constexpr int64_t kOnnxIrVersion = 8;
inline constexpr int64_t kOnnxOpset = 17;
inline constexpr const char* kOnnxBatch = "batch";  // the name of the extent that is left open

// An extent: fixed, or so many per sample of a batch of any size.
struct OnnxDim {
  int64_t extent = 1;
  bool batch = false;

  bool is_one() const { return extent == 1 && !batch; }
  bool operator==(const OnnxDim&) const = default;
};
using OnnxDims = std::vector<OnnxDim>;

// Numbers of the format. Whole numbers are int64 throughout, as ONNX's own ops give and take them.
enum class OnnxType : uint8_t { kFloat = 1, kInt64 = 7, kBool = 9, kFloat16 = 10, kBFloat16 = 16 };
OnnxType onnx_type(DType dtype);

struct OnnxAttribute {
  std::string name;
  std::variant<int64_t, float, std::string, std::vector<int64_t>> value;
};

struct OnnxNode {
  std::string type;
  std::vector<std::string> inputs, outputs;
  std::vector<OnnxAttribute> attributes;
};

struct OnnxConstant {
  std::string name;
  OnnxType type = OnnxType::kFloat;
  std::vector<int64_t> dims;
  std::string bytes;  // little-endian, row-major
};

// A tensor of the trained model, under its own name.
struct OnnxWeight {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<int64_t> dims;  // as it is written
  // A filter [O,KH,KW,I] here, which ONNX has as [O,I,KH,KW].
  bool channels_first = false;

  int64_t bytes() const;
};

struct OnnxPort {
  std::string name;
  OnnxType type = OnnxType::kFloat;
  OnnxDims dims;
};

struct OnnxModel {
  std::string name;
  std::vector<OnnxPort> inputs, outputs;
  std::vector<OnnxNode> nodes;  // each after those that it reads
  std::vector<OnnxConstant> constants;
  std::vector<OnnxWeight> weights;
  std::vector<std::pair<std::string, std::string>> metadata;

  int64_t tensor_bytes() const;  // of weights and constants
};

// What a model may take with its weights inline.
inline constexpr int64_t kOnnxInlineLimit = int64_t{2'000'000'000};

}  // namespace lockstep
