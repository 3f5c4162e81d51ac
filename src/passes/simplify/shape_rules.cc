// Ops that only move, repeat or convert elements: chains of them become one, and those that do nothing go
// away.
#include <algorithm>
#include <array>

#include "ops/reduce_axes.h"
#include "passes/simplify/rule.h"

namespace lockstep::simplification {
namespace {

Value same_type(Simplifier& s, const Candidate& c) { return s.type(c.in(0)) == c.type ? c.in(0) : Value{}; }

Value reshape_of_reshape(Simplifier& s, const Candidate& c) {
  const Node* inner = s.made_by(c.in(0), "reshape");
  return inner != nullptr ? s.reshape(inner->inputs[0], c.type.shape) : Value{};
}

Value broadcast_of_broadcast(Simplifier& s, const Candidate& c) {
  const Node* inner = s.made_by(c.in(0), "broadcast");
  return inner != nullptr ? s.emit("broadcast", {inner->inputs[0]}, c.attributes) : Value{};
}

// Repeats nothing, so it is a view.
Value broadcast_as_reshape(Simplifier& s, const Candidate& c) {
  return s.type(c.in(0)).shape.numel() == c.type.shape.numel() ? s.reshape(c.in(0), c.type.shape) : Value{};
}

// A reshape that only puts extents of 1 in front does what broadcasting does by itself.
Value broadcast_of_unsqueezed(Simplifier& s, const Candidate& c) {
  const Node* inner = s.made_by(c.in(0), "reshape");
  if (inner == nullptr) return {};
  const Shape& from = s.type(inner->inputs[0]).shape;
  const Shape& to = s.type(c.in(0)).shape;
  if (to.rank() <= from.rank() || to.product(0, to.rank() - from.rank()) != 1) return {};
  for (int axis = 1; axis <= from.rank(); ++axis)
    if (from[-axis] != to[-axis]) return {};
  return s.emit("broadcast", {inner->inputs[0]}, c.attributes);
}

Value transpose_of_transpose(Simplifier& s, const Candidate& c) {
  const Node* inner = s.made_by(c.in(0), "transpose");
  if (inner == nullptr) return {};
  const auto& first = inner->attributes.integers("permutation");
  std::vector<int64_t> composed;
  const auto rank = static_cast<int64_t>(first.size());
  for (const int64_t axis : c.attributes.integers("permutation")) {
    const int64_t source = first[static_cast<size_t>(axis < 0 ? axis + rank : axis)];
    composed.push_back(source < 0 ? source + rank : source);
  }
  return s.emit("transpose", {inner->inputs[0]}, {{"permutation", composed}});
}

// Elements keep their order in memory when the axes longer than 1 keep theirs.
Value transpose_as_reshape(Simplifier& s, const Candidate& c) {
  const Shape& from = s.type(c.in(0)).shape;
  int64_t last = -1;
  for (const int64_t given : c.attributes.integers("permutation")) {
    const int64_t axis = given < 0 ? given + from.rank() : given;
    if (from[static_cast<int>(axis)] == 1) continue;
    if (axis < last) return {};
    last = axis;
  }
  return s.reshape(c.in(0), c.type.shape);
}

// Whether every value of one type, and its sign and infinities, survives in the other.
bool exact(DType from, DType to) {
  if (from == to || from == DType::kBool) return true;
  switch (to) {
    case DType::kF32: return from == DType::kBF16 || from == DType::kF16 || from == DType::kU8;
    case DType::kF16:
    case DType::kBF16:
    case DType::kI32: return from == DType::kU8;
    case DType::kI64: return from == DType::kU8 || from == DType::kI32;
    default: return false;
  }
}

Value cast_of_cast(Simplifier& s, const Candidate& c) {
  const Node* inner = s.made_by(c.in(0), "cast");
  if (inner == nullptr || !exact(s.type(inner->inputs[0]).dtype, s.type(c.in(0)).dtype)) return {};
  return s.emit("cast", {inner->inputs[0]}, c.attributes);
}

Value slice_of_slice(Simplifier& s, const Candidate& c) {
  const Node* inner = s.made_by(c.in(0), "slice");
  const int rank = c.type.shape.rank();
  const auto axis = [&](const Attributes& attributes) { return (attributes.integer("axis") + rank) % rank; };
  if (inner == nullptr || axis(inner->attributes) != axis(c.attributes)) return {};
  const int64_t shift = inner->attributes.integer("begin");
  Attributes attributes = c.attributes;
  attributes.set("begin", attributes.integer("begin") + shift);
  attributes.set("end", attributes.integer("end") + shift);
  return s.emit("slice", {inner->inputs[0]}, attributes);
}

Value concat_of_one(Simplifier&, const Candidate& c) { return c.inputs.size() == 1 ? c.in(0) : Value{}; }

Value reduce_nothing(Simplifier& s, const Candidate& c) {
  return s.type(c.in(0)).shape.numel() == c.type.shape.numel() && s.type(c.in(0)).dtype == c.type.dtype
             ? s.reshape(c.in(0), c.type.shape)
             : Value{};
}

constexpr std::array kRules = {
    Rule{"reshape", same_type},
    Rule{"reshape", reshape_of_reshape},
    Rule{"broadcast", same_type},
    Rule{"broadcast", broadcast_as_reshape},
    Rule{"broadcast", broadcast_of_broadcast},
    Rule{"broadcast", broadcast_of_unsqueezed},
    Rule{"transpose", transpose_of_transpose},
    Rule{"transpose", transpose_as_reshape},
    Rule{"cast", same_type},
    Rule{"cast", cast_of_cast},
    Rule{"slice", same_type},
    Rule{"slice", slice_of_slice},
    Rule{"concat", concat_of_one},
    Rule{"sum", reduce_nothing},
    Rule{"mean", reduce_nothing},
    Rule{"max", reduce_nothing},
};

}  // namespace

std::span<const Rule> shape_rules() { return kRules; }

}  // namespace lockstep::simplification
