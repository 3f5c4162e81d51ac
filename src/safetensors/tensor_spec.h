// What a file says about a tensor: its name, element type and shape; NamedTensor adds the bytes
// themselves.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/dtype.h"
#include "base/shape.h"

namespace lockstep {

struct TensorSpec {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;

  int64_t bytes() const { return shape.numel() * size_of(dtype); }
  bool operator==(const TensorSpec&) const = default;
};

// A full logical tensor in host memory, dense and row-major. Does not own the bytes.
struct NamedTensor {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;
  std::span<const std::byte> bytes;
};

}  // namespace lockstep
