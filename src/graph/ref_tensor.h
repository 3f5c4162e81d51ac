// A tensor of the interpreter: any type, held as doubles.
#pragma once
#include <vector>

#include "graph/type.h"

namespace lockstep {

struct RefTensor {
  Type type;
  std::vector<double> data;

  RefTensor() = default;
  explicit RefTensor(Type t) : type(t), data(static_cast<size_t>(t.shape.numel()), 0.0) {}
  RefTensor(Type t, std::vector<double> values) : type(t), data(std::move(values)) {}

  const Shape& shape() const { return type.shape; }
  int64_t numel() const { return type.shape.numel(); }
  double& operator[](int64_t i) { return data[static_cast<size_t>(i)]; }
  double operator[](int64_t i) const { return data[static_cast<size_t>(i)]; }
  double scalar() const { return data.at(0); }
};

}  // namespace lockstep
