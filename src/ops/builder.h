// Builder: writes ops into a graph the way a model author thinks of them. Operands of pointwise ops are
// broadcast together by NumPy's rule (the graph itself has only explicit broadcasts).
//
// Shape letters used throughout: B batch, T sequence, C channels or width, H heads, D width of a head, V
// vocabulary.
#pragma once
#include <string_view>
#include <vector>

#include "graph/op_def.h"

namespace lockstep {

class Builder {
 public:
  explicit Builder(Graph& graph) : graph_(graph) {}

  Graph& graph() { return graph_; }
  const Type& type(Value value) const { return graph_.type(value); }
  const Shape& shape(Value value) const { return graph_.type(value).shape; }

  Value input(std::string_view name, Type type) { return graph_.add_input(name, type, Role::kInput); }
  // A frozen one is not trained and has no gradient.
  Value param(std::string_view name, Shape shape, DType dtype = DType::kF32, bool frozen = false) {
    return graph_.add_input(name, {dtype, shape}, frozen ? Role::kFrozen : Role::kParam);
  }

  // A value of the given type filled with one number.
  Value constant(double value, Type type);
  Value constant_like(double value, Value like) { return constant(value, type(like)); }

  // Any op by name; one result.
  Value op(std::string_view name, std::initializer_list<Value> inputs, const Attributes& attributes = {}) {
    return graph_.emit(name, inputs, attributes);
  }
  std::vector<Value> op_all(std::string_view name, std::initializer_list<Value> inputs,
                            const Attributes& attributes = {}) {
    return graph_.emit_all(name, std::span<const Value>(inputs.begin(), inputs.size()), attributes);
  }

  // Pointwise with two operands, broadcast together first.
  Value binary(std::string_view name, Value a, Value b);
  Value add(Value a, Value b) { return binary("add", a, b); }
  Value sub(Value a, Value b) { return binary("sub", a, b); }
  Value mul(Value a, Value b) { return binary("mul", a, b); }
  Value div(Value a, Value b) { return binary("div", a, b); }
  Value scale(Value a, double factor) { return mul(a, constant(factor, {type(a).dtype, {}})); }
  Value shift(Value a, double amount) { return add(a, constant(amount, {type(a).dtype, {}})); }
  Value neg(Value a) { return op("neg", {a}); }
  Value exp(Value a) { return op("exp", {a}); }
  Value log(Value a) { return op("log", {a}); }
  Value sqrt(Value a) { return op("sqrt", {a}); }
  Value rsqrt(Value a) { return op("rsqrt", {a}); }
  Value tanh(Value a) { return op("tanh", {a}); }
  // A bool tensor: a `order` b, where order is eq, ne, lt, le, gt or ge.
  Value compare(std::string_view order, Value a, Value b) {
    return op("compare", {a, b}, {{"op", std::string(order)}});
  }
  // 1 where that holds and 0 elsewhere, as f32; the operands are broadcast together first.
  Value indicator(std::string_view order, Value a, Value b);
  Value where(Value condition, Value a, Value b) { return op("where", {condition, a, b}); }
  Value cast(Value a, DType dtype) {
    return type(a).dtype == dtype ? a : op("cast", {a}, {{"dtype", dtype}});
  }

  Value broadcast(Value a, const Shape& target);
  Value reshape(Value a, const Shape& target);
  Value transpose(Value a, std::vector<int64_t> permutation);
  Value slice(Value a, int64_t axis, int64_t begin, int64_t end);
  Value concat(std::initializer_list<Value> values, int64_t axis);
  // Sums over axes (dropped unless keep), then nothing; an empty list means no axis.
  Value sum(Value a, std::vector<int64_t> axes, bool keep = false);
  Value mean(Value a, std::vector<int64_t> axes, bool keep = false);
  Value max(Value a, std::vector<int64_t> axes, bool keep = false);
  // Undoes a broadcast: sums a down to shape.
  Value sum_to(Value a, const Shape& target);

  Value matmul(Value a, Value b, bool transpose_a = false, bool transpose_b = false);

 private:
  Graph& graph_;
};

}  // namespace lockstep
