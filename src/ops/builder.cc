#include "ops/builder.h"

#include "base/error.h"

namespace lockstep {

Value Builder::constant(double value, Type type) {
  const auto extents = type.shape.extents();
  return graph_.emit("constant", {},
                     {{"value", value},
                      {"shape", std::vector<int64_t>(extents.begin(), extents.end())},
                      {"dtype", type.dtype}});
}

Value Builder::binary(std::string_view name, Value a, Value b) {
  Shape common;
  if (!broadcast_shapes(shape(a), shape(b), &common))
    throw UserError("{}({}: {}, {}: {}): the shapes do not broadcast together; equal extents or 1 are needed",
                    name, graph_.name(a), to_string(type(a)), graph_.name(b), to_string(type(b)));
  return op(name, {broadcast(a, common), broadcast(b, common)});
}

Value Builder::indicator(std::string_view order, Value a, Value b) {
  Shape common;
  LOCKSTEP_CHECK(broadcast_shapes(shape(a), shape(b), &common), "{} and {} do not broadcast together",
                 to_string(shape(a)), to_string(shape(b)));
  return cast(compare(order, broadcast(a, common), broadcast(b, common)), DType::kF32);
}

Value Builder::broadcast(Value a, const Shape& target) {
  if (shape(a) == target) return a;
  return op("broadcast", {a}, {{"shape", std::vector<int64_t>(target.begin(), target.end())}});
}

Value Builder::reshape(Value a, const Shape& target) {
  if (shape(a) == target) return a;
  return op("reshape", {a}, {{"shape", std::vector<int64_t>(target.begin(), target.end())}});
}

Value Builder::transpose(Value a, std::vector<int64_t> permutation) {
  return op("transpose", {a}, {{"permutation", std::move(permutation)}});
}

Value Builder::slice(Value a, int64_t axis, int64_t begin, int64_t end) {
  return op("slice", {a}, {{"axis", axis}, {"begin", begin}, {"end", end}});
}

Value Builder::concat(std::initializer_list<Value> values, int64_t axis) {
  return op("concat", values, {{"axis", axis}});
}

Value Builder::sum(Value a, std::vector<int64_t> axes, bool keep) {
  return axes.empty() ? a : op("sum", {a}, {{"axes", std::move(axes)}, {"keep", keep}});
}

Value Builder::mean(Value a, std::vector<int64_t> axes, bool keep) {
  return axes.empty() ? a : op("mean", {a}, {{"axes", std::move(axes)}, {"keep", keep}});
}

Value Builder::max(Value a, std::vector<int64_t> axes, bool keep) {
  return axes.empty() ? a : op("max", {a}, {{"axes", std::move(axes)}, {"keep", keep}});
}

Value Builder::sum_to(Value a, const Shape& target) {
  const Shape& from = shape(a);
  if (from == target) return a;
  std::vector<int64_t> axes;
  for (int axis = 0; axis < from.rank(); ++axis) {
    const int from_end = from.rank() - axis;
    if (from_end > target.rank() || (target[-from_end] == 1 && from[axis] != 1)) axes.push_back(axis);
  }
  return reshape(sum(a, axes), target);
}

Value Builder::matmul(Value a, Value b, bool transpose_a, bool transpose_b) {
  return op("matmul", {a, b}, {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}});
}

}  // namespace lockstep
