// A few ops for tests of the graph itself, which must not need the real ones.
#pragma once
#include "graph/op_def.h"

namespace lockstep::testing {

inline const OpSet& toy_ops() {
  static const OpSet ops([] {
    const auto same_type = [](const InferContext& c) { return std::vector<Type>{c.type(0)}; };
    OpDef twice{.name = "twice", .summary = "a and a again"};
    twice.infer = [](const InferContext& c) { return std::vector<Type>{c.type(0), c.type(0)}; };

    OpDef join{.name = "join", .summary = "any number of equal types"};
    join.max_inputs = OpDef::kVariadic;
    join.infer = [](const InferContext& c) {
      for (int operand = 1; operand < c.count(); ++operand) c.require_same_type(operand, 0);
      return std::vector<Type>{c.type(0)};
    };

    OpDef tuned{.name = "tuned", .summary = "has an attribute of every kind"};
    tuned.attributes = {{"flag", false},
                        {"count", int64_t{7}},
                        {"rate", 0.0},
                        {"label", std::string("plain")},
                        {"dtype", DType::kF32},
                        {"axes", std::vector<int64_t>{}},
                        {"weights", std::vector<double>{}}};
    tuned.infer = same_type;

    OpDef filled{.name = "filled", .summary = "no operands, a required attribute"};
    filled.attributes = {{"shape", std::vector<int64_t>{}, "extents", true}};
    filled.min_inputs = filled.max_inputs = 0;
    filled.infer = [](const InferContext& c) {
      return std::vector<Type>{{DType::kF32, Shape(c.attributes().integers("shape"))}};
    };

    OpDef late{.name = "late", .summary = "belongs to scheduled graphs"};
    late.stage = Stage::kScheduled;
    late.infer = same_type;
    return std::vector<OpDef>{twice, join, tuned, filled, late};
  }());
  return ops;
}

}  // namespace lockstep::testing
