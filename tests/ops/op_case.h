// One case of the op tables in tests/ops/cases/<op>.cases. A file holds any number of cases:
//
//   case rows of odd length
//   range y 0 10            # input y is drawn from [0, 10); integers are drawn whole; the default is [-1, 1)
//   tolerance 2e-5          # relative to the largest reference value of a tensor; the default is 1e-5
//   size 1                  # ... but to no less than this: the terms of sums that cancel
//   dtypes f32 bf16         # also run with f32 replaced by bf16 (looser tolerance); the default is f32
//   no-gradient             # do not differentiate
//   graph t(x: f32[4,33] @param, y: i32[4]) {
//     ...
//     return z
//   }
//
// Inputs marked @param are differentiated. Every output is compared.
#pragma once
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "graph/graph.h"
#include "graph/interpreter.h"

namespace lockstep::testing {

struct OpCase {
  std::string file;  // "layer_norm"
  std::string name;
  std::string text;
  std::map<std::string, std::pair<double, double>> ranges;
  double tolerance = 1e-5;
  double size = 0;
  std::vector<std::string> dtypes{"f32"};
  bool differentiate = true;

  std::string label() const { return file + ": " + name; }
};

std::vector<OpCase> read_cases(const std::string& folder);
// The case with every f32 of its text replaced by the given dtype.
OpCase with_dtype(const OpCase& op_case, const std::string& dtype);
// Seeded inputs, rounded to their dtype.
RefTensors make_inputs(const Graph& graph, const OpCase& op_case);

}  // namespace lockstep::testing
