// The type of a value: element type and shape.
#pragma once
#include <string>

#include "base/dtype.h"
#include "base/shape.h"

namespace lockstep {

struct Type {
  DType dtype = DType::kF32;
  Shape shape;

  int64_t bytes() const { return shape.numel() * size_of(dtype); }
  bool operator==(const Type&) const = default;
};

std::string to_string(const Type& type);  // "f32[32,784]"

}  // namespace lockstep
